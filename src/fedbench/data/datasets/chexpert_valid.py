"""CheXpert with its official validation part as the test part (codasca's Table 4)."""

import dataclasses

from fedbench.data.datasets import chexpert

dataset = dataclasses.replace(
    chexpert.dataset,
    name="chexpert_valid",
    title="CheXpert (official validation part)",
    raw="chexpert",
    official=True,
)
