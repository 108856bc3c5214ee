"""Digits: 1 797 handwritten digits of 8x8 pixels that come with scikit-learn. Needs no download."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.labels import hold_out
from fedbench.random import stream


@dataclass(frozen=True, kw_only=True)
class Digits(Dataset):
    """Part of the UCI optical digits, without a split: a stratified share, always the same, is the test part.

    Attributes:
        test_share: the share of each class that is the test part.
    """

    test_share: float = 0.2

    def prepare(self, raw_dir: Path) -> Arrays:
        """Scale the 17 grey levels to [0, 1] and split off the test part."""
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        x = (images / 16.0).astype(np.float32).reshape(-1, *self.shape)
        y = labels.astype(np.int64)
        test = hold_out(y, self.test_share, stream(0, "digits test part"))
        train = np.setdiff1d(np.arange(len(y)), test)
        note = f"test part: {self.test_share:.0%} of each class, drawn once; pixels divided by 16"
        return Arrays(x[train], y[train], x[test], y[test], notes=(note,))


dataset = Digits(
    name="digits",
    title="Digits",
    classes=tuple("0123456789"),
    shape=(1, 8, 8),
    licence="CC BY 4.0 (UCI); ships with scikit-learn",
    source="sklearn.datasets.load_digits (UCI Optical Recognition of Handwritten Digits, test part)",
)
