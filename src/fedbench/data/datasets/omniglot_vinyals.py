"""Omniglot as fcsg's program has it: 1 028, 172 and 423 characters (Vinyals et al., NIPS 2016), white ink."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from fedbench.data.datasets import omniglot

HELD = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
"""Background alphabets whose characters are the validation part: 172."""
LAST = 423
"""The last characters, sorted by part, alphabet and number, are the test part."""


class Vinyals(omniglot.Omniglot):
    """The split of torchmeta, which the program reads (353356a, Federated Model-Agnostic Meta-Learning/dataset.py
    93-129): it trains on the first part and measures on the second, the official validation part here
    (``data.validation: own``, metrics ``val_*``); it leaves the third. Ink is white on black.

    Images are scaled by Lanczos here and bilinearly there.
    """

    ink: ClassVar[str] = "white on black"

    def inked(self, images: np.ndarray) -> np.ndarray:
        """Invert."""
        return 255 - images

    def parts(self, characters: np.ndarray) -> np.ndarray:
        """Return the part of each character."""
        alphabets = np.array([path.split("/")[1] for path in characters])
        parts = np.where(np.isin(alphabets, HELD), omniglot.HELD, omniglot.TRAIN)
        parts[-LAST:] = omniglot.TEST
        return parts


dataset = Vinyals(
    **{field.name: getattr(omniglot.dataset, field.name) for field in dataclasses.fields(omniglot.dataset)}
    | {"name": "omniglot_vinyals", "title": "Omniglot (split of Vinyals et al.)", "raw": "omniglot"}
)
