"""What a reader of numbers on one's own data should know: each is said once, below tables and when preparing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

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
        # pictures themselves may not fit into memory
        known = {hash(row.tobytes()) for row in x_train}
        if same := sum(hash(row.tobytes()) in known for row in x_test):
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
        counted = cells.dtype.kind in "iuOU"
        distinct = counted and len(cells) >= LEAST and cells.nunique() == len(cells)
        if distinct or _IDENTIFIER.fullmatch(str(column)):
            why = "all cells differ" if distinct else "by its name"
            yield (
                f"the feature {column!r} looks like an identifier ({why}): write `drop: [{column}]`, or "
                f"`group: {column}` for patients"
            )
