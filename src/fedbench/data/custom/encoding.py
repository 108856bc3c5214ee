"""What a table becomes as inputs: learned from its training part, and kept beside a model for further samples."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import ConfigDict

from fedbench.data.custom import tables
from fedbench.data.custom.class_labels import as_number
from fedbench.data.custom.spec import TABLES, OwnSpec
from fedbench.data.dataset import IMPUTED
from fedbench.data.decoding import Pictures
from fedbench.data.picture import Form
from fedbench.errors import UserError, shortened
from fedbench.spec import Spec

log = logging.getLogger(__name__)

ABSENT = "(missing)"
"""The word of an empty cell in a column of words, where cells may be missing."""


class Encoding(Spec):
    """How rows become features [n, F]: those of numbers first.

    Attributes:
        medians: of each column of numbers, in order: what an empty cell becomes.
        words: of each column of words, in order: the words of the training part, each a feature, or one for two.
        scaling: of the numbers, as :func:`scaling_of`; None where they stay as they are.
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
        scaling = scaling_of(plain.of(train)[:, : len(numbers)])
        return plain.model_copy(update={"scaling": tuple(part.tolist() for part in scaling)})

    def features(self) -> list[tuple[str, str]]:
        """Return the column and the name of each feature, in their order."""
        words = ((name, word) for name, known in self.words.items() for word in known[len(known) == 2 :])
        return [*((name, name) for name in self.medians), *((name, f"{name} {word}") for name, word in words)]

    def of(self, features: pd.DataFrame) -> np.ndarray:
        """Return rows as features [n, F] float64; a word that training did not see is none of its words."""
        columns = [features[[*self.medians]].astype(np.float64).fillna(self.medians).to_numpy()]
        for name, known in self.words.items():
            cells = filled(features[name]).to_numpy()[:, None]
            columns.append(cells == np.array(known[len(known) == 2 :], dtype=object))
        x = np.hstack(columns, dtype=np.float64)
        return x if self.scaling is None else scaled(x, *self.scaling)

    def notes(self, *parts: pd.DataFrame) -> tuple[str, ...]:
        """Say which columns of words and of empty cells the rows of all parts have."""
        gaps = {name: sum(int(part[name].isna().sum()) for part in parts) for name in self.medians}
        filled_in = ", ".join(f"{name} ({count})" for name, count in gaps.items() if count)
        columns = ", ".join(self.words)
        notes = (f"one feature for each word of the training part: {columns}",) if columns else ()
        return (*notes, f"{IMPUTED}: {filled_in}") if filled_in else notes


def filled(cells: pd.Series) -> pd.Series:
    """Return a column of words with a word in each cell."""
    cells = cells.astype(object)
    return cells.where(cells.notna(), ABSENT).astype(str)


def scaling_of(train: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first row of features [n, F], their mean above it, and their standard deviation, [F] float64 each.

    A feature whose spread is that of rounding is a constant: its deviation is infinite, so that it becomes 0.
    """
    rounding = np.finfo(train.dtype if train.dtype.kind == "f" else np.float64).eps
    x = train.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is said later
        least = np.ldexp(rounding, np.frexp(np.abs(x).max(0))[1])
        first = x[0].copy()  # subtracted first: the mean of what is far from 0 would lose digits
        x = x - first
        std = x.std(0)
        return first, x.mean(0), np.where(std <= least, np.inf, std)


def scaled(x: np.ndarray, *scaling: np.ndarray | list[float]) -> np.ndarray:
    """Return features [n, >= F], the first F standardized by what :func:`scaling_of` returns, in float64."""
    first, mean, scale = map(np.asarray, scaling)
    count = len(first)
    with np.errstate(invalid="ignore"):
        return np.hstack([(x[:, :count].astype(np.float64) - first - mean) / scale, x[:, count:]])


class Reading(Encoding):
    """What is read of a table, and what its cells become.

    Attributes:
        named: the columns of label, group, site and place of a picture, those that the dataset has.
        classes: the class that each label is trained as, -1 for one that is left out.
        n_classes: how many classes are told apart.
        missing: what an empty cell is, as in the dataset's YAML.
        images: the folder of the pictures that the table lists; they are resized to ``size``, ``grey`` or coloured.
    """

    named: dict[Literal["label", "group", "site", "path"], str]
    classes: dict[str, int] = {}
    n_classes: int = 2
    missing: Literal["error", "drop", "median"] = "error"
    images: Path | None = None
    size: tuple[int, int] = (64, 64)
    grey: bool = False

    @classmethod
    def of_dataset(cls, spec: OwnSpec, train: pd.DataFrame, classes: dict[str, int]) -> Self:
        """Return how a dataset is read; ``train`` are the rows of its training part, ``classes`` that of each label."""
        columns = {"label": spec.label, "group": spec.group, "site": spec.site}
        how: dict[str, Any] = {"missing": spec.missing}
        if spec.images is not None:
            columns["path"] = spec.path
            how = {"images": spec.images, "size": spec.size, "grey": spec.grey}
        else:
            how |= dict(Encoding.learned(train, spec.standardize))
        return cls(named={name: column for name, column in columns.items() if column}, classes=classes, **how)

    def read(self, file: Path, images: Path | None = None) -> tuple[np.ndarray, pd.DataFrame]:
        """Read the samples of a table; columns that training did not see are passed over.

        Args:
            file: may lack label, group and site.
            images: the folder of its pictures. Default: that of the dataset.

        Returns:
            inputs [n, ...] as they are stored before training, and a table with the ``row`` of each sample, counted
            from 0, and what the file has of ``group``, ``site`` and ``label``: its class, -1 where it is not known.

        Raises:
            UserError: it lacks a column or a picture, or a cell is not what it was in training.
        """
        if file.suffix not in TABLES or not file.is_file():
            raise UserError(f"{file} does not exist, or is no table ({', '.join(TABLES)})")
        table = tables.read_table(
            file, [*self.named.values()], (*self.medians, *self.words), (), self.missing, self.words
        )
        for note in (*table.notes, *table.remarks):
            log.warning("%s: %s", file, note)
        columns = {name: table.named[column] for name, column in self.named.items() if column in table.named}
        if "label" in columns:
            columns["label"] = self._classes(file, columns["label"].tolist())
        places = columns.pop("path", None)
        shown = pd.DataFrame({"row": table.rows} | columns)
        if self.images is None:
            return self._features(file, table.features), shown
        if places is None:
            raise UserError(f"{file} lacks the column {self.named['path']!r}, the places of its pictures")
        pictures = Pictures(images or self.images, depth=0)
        pictures.check(places.tolist(), file)
        return pictures.load(places.tolist(), Form(self.size, self.grey, upright=True)), shown

    def _features(self, file: Path, features: pd.DataFrame) -> np.ndarray:
        for name, known in self.words.items():
            cells = filled(features[name])
            if other := sorted({*cells} - {*known}):
                log.warning(
                    "%s: column %r has %s in %d of %d rows, which training did not see: it counts as %s",
                    file, name, shortened(", ".join(map(repr, other)), 60), cells.isin(other).sum(), len(cells),
                    repr(known[0]) if len(known) == 2 else "none of its words",
                )  # fmt: skip
        return self.of(features).astype(np.float32)

    def _classes(self, file: Path, labels: Sequence[str]) -> np.ndarray:
        known: Mapping[str, int] = {as_number(text): of for text, of in self.classes.items()} | {"": -1}
        for row, text in enumerate(labels):
            if as_number(text) not in known:
                raise UserError(
                    f"{file}, line {row + 2}: the label {shortened(text, 40)!r} is none of training's "
                    f"({shortened(', '.join(self.classes), 60)}); mend it, or empty the cell"
                )
        return np.array([known[as_number(text)] for text in labels])
