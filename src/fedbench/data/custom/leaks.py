"""What a reader of numbers on one's own data should know: each is said once, below tables and when preparing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbench.data.custom import split
from fedbench.data.custom.class_labels import folded

if TYPE_CHECKING:
    import pandas as pd

_IDENTIFIER = re.compile(
    r"(.*[\W_])?(id|ids|pid|uid|uuid|mrn|patient|subject|identifier|name)([\W_]?(id|no|nr|num|number))?", re.I
)
LEAST = 20
"""Rows from which on a column of different whole numbers counts as an identifier."""

OF_EACH = 10
"""Rows of each class from which on it is no chance that a feature tells classes apart."""


def remarks(parts: dict[str, Any], whole_groups: bool) -> Iterator[str]:
    """Say what the ``parts``, fields of :class:`fedbench.data.dataset.Arrays`, share that they should not."""
    x_train, x_test = parts["x_train"], parts["x_test"]
    seen = split.seen(parts)
    if x_train.dtype == x_test.dtype and x_train.shape[1:] == x_test.shape[1:]:
        # pictures themselves may not fit into memory
        known = {hash(row.tobytes()) for row in itertools.compress(x_train, seen)}
        if same := sum(hash(row.tobytes()) in known for row in x_test):
            yield f"{same} of {len(x_test)} test samples equal a training sample in every feature"
    if (train := parts.get("group_train")) is None:
        return
    owners = {"training": train[seen], "validation": train[~seen], "test": parts.get("group_test", train[:0])}
    cure = "" if whole_groups else ": right for hospitals; for patients write `whole_groups: true`"
    for first, second in itertools.combinations(owners, 2):
        if (both := np.intersect1d(owners[first], owners[second])).size:
            count = len(np.unique(owners[second]))
            yield f"{len(both)} of the {count} groups of the {second} part have {first} samples too{cure}"


def second_labels(
    features: pd.DataFrame, x: np.ndarray, y: np.ndarray, columns: Sequence[str]
) -> Iterator[str]:
    """Say which columns of a table alone tell its classes y [n] apart.

    Two classes: one with a feature, of x [n, F], that ranks them without a mistake. More: one that has a cell for each.
    """
    counts = np.bincount(y)
    if len(counts) < 2 or counts.min() < OF_EACH:
        return
    if len(counts) == 2:
        negative, positive = x[y == 0], x[y == 1]
        apart = (negative.max(0) < positive.min(0)) | (positive.max(0) < negative.min(0))
    else:
        as_many = features.loc[:, features.nunique(dropna=False) == len(counts)]
        columns, apart = [*as_many], (as_many.groupby(y).nunique(dropna=False) == 1).all()
    for column in dict.fromkeys(itertools.compress(columns, apart)):
        yield (
            f"the feature {column!r} alone tells the classes of all {len(y)} training samples apart: if it is the "
            f"label in other words, write `drop: [{column}]`"
        )


def identifiers(features: pd.DataFrame) -> Iterator[str]:
    """Say which features of a table look like an identifier: by name, or as words or whole numbers that all differ.

    Likewise which one looks like a split, by its words.
    """
    for column in features:
        cells = features[column]
        words = {folded(str(word)) for word in cells.dropna().unique()} if cells.dtype.kind in "OU" else set()
        if words and words <= split.PART_WORDS.keys():
            yield f"the feature {column!r} looks like a split: write `split: {column}`, or `drop: [{column}]`"
        counted = cells.dtype.kind in "iuOU"
        distinct = counted and len(cells) >= LEAST and cells.nunique() == len(cells)
        if distinct or _IDENTIFIER.fullmatch(str(column)):
            why = "all cells differ" if distinct else "by its name"
            yield (
                f"the feature {column!r} looks like an identifier ({why}): write `drop: [{column}]`, or "
                f"`group: {column}` for patients"
            )
