"""A dataset to copy: what it holds, where it comes from.

    cp examples/new_dataset.py src/fedbench/data/datasets/new_dataset.py     # the name below has to be the file's

In a study: `datasets: {New: {data: {dataset: new_dataset}, network: {name: mlp}}}`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.random import stream


class NewDataset(Dataset):
    """Say here what was decided where the source leaves a choice: which files, which split, which classes."""

    # Raw files that can be downloaded, each with its checksum; they lie in `raw_dir` when `prepare` is called.
    # The same file is asked of the configured mirror first. `Dataset.account` is for files behind an account.
    #
    # def downloads(self) -> tuple[Download, ...]:  # from fedbench.data.download import Download
    #     return (Download("train.csv", ("https://example.org/train.csv",), md5="..."),)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the raw files into arrays. As it stands, two clouds of points are drawn instead."""
        # Randomness comes from a stream, so that every machine prepares the same bytes.
        rng = stream(0, "new_dataset")
        y = np.arange(1000) % 2
        x = rng.normal(size=(1000, 10)) + 0.7 * y[:, None]
        # x: [n, features], or images [n, C, H, W] as float32 near [0, 1] or as uint8; y: whole numbers from 0 on.
        # `group_train` is the patient or site of each training sample, for data that come in groups. Patients lie
        # in one part each: say `whole_groups=True` below, and hold out the test part in whole groups.
        return Arrays(x[:800], y[:800], x[800:], y[800:], notes=("drawn from two normal distributions",))


dataset = NewDataset(
    name="new_dataset",
    title="New",  # what tables call it
    classes=("negative", "positive"),  # in the order of their labels
    shape=(10,),  # of one sample
    licence="not stated",
    source="https://example.org",
)
