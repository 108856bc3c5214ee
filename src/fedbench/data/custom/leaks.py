"""What a reader of numbers on one's own data should know: each is said once, below tables and when preparing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbench.data.custom.class_labels import folded, twins

if TYPE_CHECKING:
    import pandas as pd

_IDENTIFIER = re.compile(
    r"(.*[\W_])?(id|ids|pid|uid|uuid|mrn|patient|subject|identifier|name)([\W_]?(id|no|nr|num|number))?", re.I
)
LEAST = 20
"""Rows from which on a column of different whole numbers counts as an identifier."""


def remarks(parts: dict[str, Any], whole_groups: bool) -> Iterator[str]:
    """Say what training and test part share that they should not.

    Args:
        parts: fields of :class:`fedbench.data.dataset.Arrays`.
        whole_groups: whether a group may not lie in two parts.
    """
    x_train, x_test = parts["x_train"], parts["x_test"]
    if x_train.dtype == x_test.dtype and x_train.shape[1:] == x_test.shape[1:]:
        known = set(map(_mark, x_train))
        if same := sum(_mark(row) in known for row in x_test):
            yield f"{same} of {len(x_test)} test samples equal a training sample in every feature"
    train, test = parts.get("group_train"), parts.get("group_test")
    if train is not None and test is not None and (both := np.intersect1d(train, test)).size:
        count = len(np.unique(test))
        cure = "" if whole_groups else ": right for hospitals; for patients write `whole_groups: true`"
        yield f"{len(both)} of the {count} groups of the test part have training samples too{cure}"


def identifiers(features: pd.DataFrame) -> Iterator[str]:
    """Say which features of a table look like an identifier: by name, or as words or whole numbers that all differ."""
    for column in features:
        cells = features[column]
        counts = cells.dtype.kind in "iuOU" or not cells.dtype.kind
        distinct = counts and len(cells) >= LEAST and cells.nunique() == len(cells)
        if distinct or _IDENTIFIER.fullmatch(str(column)):
            why = "all cells differ" if distinct else "by its name"
            yield (
                f"the feature {column!r} looks like an identifier ({why}): write `drop: [{column}]`, or "
                f"`group: {column}` for patients"
            )


def alike(columns: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Say which columns of words, by name, have two that a reader takes for one."""
    for column, words in columns.items():
        if pair := twins(words, folded):
            yield f"{column!r} has {pair[0]!r} and {pair[1]!r}, which differ in writing alone: write them alike"


def rounded(features: np.ndarray, x: np.ndarray, names: Sequence[str], cure: str) -> Iterator[str]:
    """Say which features ``[n, F]`` have at most half of their different values left in single precision.

    Args:
        features: as they were read, of any type; pictures ``[n, C, H, W]`` have nothing to say.
        x: as they will be stored, but for the precision.
        names: of the first features; empty where they have none.
        cure: what to take instead.
    """
    if features.ndim != 2:
        return
    with np.errstate(over="ignore"):  # said when they are stored
        stored = x.astype(np.float32)
    for place in np.flatnonzero((stored != features).any(0)).tolist():
        before, after = (len(np.unique(part[:, place])) for part in (features, stored))
        if 2 * after <= before:
            name = repr(names[place]) if place < len(names) else place
            yield f"the feature {name} has {before} different values, and {after} in single precision: take {cure}"


def _mark(row: np.ndarray) -> bytes:
    """Return a digest of one sample; equal ones are equal samples, up to chance."""
    return hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest()
