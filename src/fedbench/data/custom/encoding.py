"""What the columns of a table become as features: learned from the training part alone."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import ConfigDict

from fedbench.data.dataset import IMPUTED
from fedbench.spec import Spec

ABSENT = "(missing)"
"""The word of an empty cell in a column of words, where cells may be missing."""


class Encoding(Spec):
    """How rows become features [n, F]: those of numbers first.

    Attributes:
        medians: of each column of numbers, in order: what an empty cell becomes.
        words: of each column of words, in order: the words of the training part, each a feature, or one for two.
        scaling: of the numbers, as :class:`Scaling`; None where they stay as they are.
    """

    # the scale of a constant is infinite
    model_config = ConfigDict(**Spec.model_config, ser_json_inf_nan="constants")

    medians: dict[str, float] = {}
    words: dict[str, list[str]] = {}
    scaling: tuple[list[float], list[float], list[float]] | None = None

    @classmethod
    def learned(cls, train: pd.DataFrame, standardize: bool) -> Self:
        """Learn from the rows of the training part, whether or not their numbers are to be standardized."""
        words = [str(name) for name in train if not pd.api.types.is_numeric_dtype(train[name])]
        numbers = [str(name) for name in train if name not in words]
        medians = train[numbers].astype(np.float64).median().fillna(0.0).to_dict()
        plain = cls(medians=medians, words={name: sorted(filled(train[name]).unique()) for name in words})
        if not standardize or not numbers:
            return plain
        scaling = Scaling.learned(plain.plain(train)[:, : len(numbers)])
        return plain.model_copy(update={"scaling": tuple(part.tolist() for part in scaling)})

    def of(self, features: pd.DataFrame) -> np.ndarray:
        """Return rows as features [n, F] float64; a word that training did not see is none of its words."""
        x = self.plain(features)
        if self.scaling is None:
            return x
        return Scaling(*map(np.array, self.scaling)).of(x)

    def plain(self, features: pd.DataFrame) -> np.ndarray:
        """Return rows as features that are not standardized."""
        columns = [features[[*self.medians]].astype(np.float64).fillna(self.medians).to_numpy()]
        for name, known in self.words.items():
            cells = filled(features[name]).to_numpy()[:, None]
            columns.append(cells == np.array(known[len(known) == 2 :], dtype=object))
        return np.hstack(columns, dtype=np.float64)

    def notes(self, *parts: pd.DataFrame) -> tuple[str, ...]:
        """Say which columns of words and of empty cells the rows of all parts have."""
        gaps = {name: sum(int(part[name].isna().sum()) for part in parts) for name in self.medians}
        filled_in = ", ".join(f"{name} ({count})" for name, count in gaps.items() if count)
        notes = (
            (f"one feature for each word of the training part: {', '.join(self.words)}",)
            if self.words
            else ()
        )
        return (*notes, f"{IMPUTED}: {filled_in}") if filled_in else notes


def filled(cells: pd.Series) -> pd.Series:
    """Return a column of words with a word in each cell."""
    cells = cells.astype(object)
    return cells.where(cells.notna(), ABSENT).astype(str)


class Scaling(NamedTuple):
    """What the features of a training part are standardized by, [F] each."""

    first: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def learned(cls, train: np.ndarray) -> Self:
        """Learn the mean of each feature [n, F] and its standard deviation, in float64.

        One whose spread is that of rounding is a constant: it becomes 0.
        """
        rounding = np.finfo(train.dtype if train.dtype.kind == "f" else np.float64).eps
        x = train.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is said later
            least = np.ldexp(rounding, np.frexp(np.abs(x).max(0))[1])
            first = x[0].copy()  # subtracted first: the mean of what is far from 0 would lose digits
            x = x - first
            std = x.std(0)
            return cls(first, x.mean(0), np.where(std <= least, np.inf, std))

    def of(self, x: np.ndarray) -> np.ndarray:
        """Return features [n, >= F], the first F standardized, in float64."""
        count = len(self.first)
        with np.errstate(invalid="ignore"):
            numbers = x[:, :count].astype(np.float64) - self.first
            return np.hstack([(numbers - self.mean) / self.scale, x[:, count:]])


def standardized(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardize each feature [n, F] of both parts by the training rows (:class:`Scaling`)."""
    if not len(train):
        return train, test
    scaling = Scaling.learned(train)
    return scaling.of(train), scaling.of(test)
