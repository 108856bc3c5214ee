"""Which rows of a user's file are training, test and validation part: as a column says, or drawn, the same always."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.data.custom.class_labels import folded
from fedbench.data.dataset import SPLIT
from fedbench.data.labels import hold_out
from fedbench.errors import UserError, unknown
from fedbench.random import stream

PART_WORDS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
PART_WORDS |= dict.fromkeys(("validation", "valid", "val"), "validation")
"""Words for the parts of a dataset, :func:`~fedbench.data.custom.class_labels.folded`, and which they mean."""


def seen(parts: dict[str, Any]) -> np.ndarray:
    """Return the rows of the training part [n] that anything may be learned from: all but those held for validation."""
    rows: np.ndarray = ~parts.get("held_train", np.zeros(len(parts["y_train"]), dtype=bool))
    return rows


def by_column(file: Path, column: str, words: Sequence[str], parts: dict[str, Any]) -> dict[str, Any]:
    """Split what is a training part alone by the word of each row; validation rows stay in it, held.

    Raises:
        UserError: a word means no part, or no row is of the training or the test part.
    """
    known = {word: PART_WORDS.get(folded(word), "") for word in dict.fromkeys(words)}
    if odd := [word for word, part in known.items() if not part]:
        raise unknown(f"part in column {column!r} of {file}", odd[0], PART_WORDS)
    if lacking := [part for part in ("train", "test") if part not in known.values()]:
        raise UserError(
            f"{file}: column {column!r} has no row {lacking[0]!r}; leave out `split:` to have a test part drawn"
        )
    said = np.array([known[word] for word in words])
    held, note = said == "validation", f"{SPLIT} {column!r}"
    if held.any():
        parts = parts | {"held_train": held}
        note += f"; its {held.sum()} validation rows are used by `validation: own` alone"
    return _apart(parts, np.flatnonzero(said == "test"), note)


def drawn(file: Path, share: float, parts: dict[str, Any], whole_groups: bool) -> dict[str, Any]:
    """Draw a ``share`` of each class of what is a training part alone: at each site if its groups do.

    Raises:
        UserError: a class has too few samples, or groups, for both parts.
    """
    y, site, test, how = parts["y_train"], parts.get("site_train"), None, ""
    groups = parts.get("group_train") if whole_groups else None
    if site is not None:
        how = " over all sites together, as a site has too few groups of a class"
        with contextlib.suppress(UserError):
            classes = site * (int(y.max(initial=0)) + 1) + y
            test, how = hold_out(classes, share, stream(0, "own test part"), groups), " at each site"
    try:
        test = hold_out(y, share, stream(0, "own test part"), groups) if test is None else test
    except UserError as error:
        raise UserError(f"{file}: test_share: {error}") from None
    if len(y) and len(test) in (0, len(y)):
        part, cure = ("training", "a smaller") if len(test) else ("test", "a larger")
        raise UserError(
            f"{file}: test_share: {share:.4g} of each of {len(np.unique(y))} classes leaves no {part} sample of "
            f"{len(y)}: take {cure} share, or labels of fewer classes"
        )
    how += ", in whole groups" if whole_groups else ""
    return _apart(parts, test, f"test part: {share:.0%} of each class{how}, drawn once")


def _apart(parts: dict[str, Any], test: np.ndarray, note: str) -> dict[str, Any]:
    train = np.setdiff1d(np.arange(len(parts["y_train"])), test)
    result: dict[str, Any] = {"notes": (*parts["notes"], note)}
    for name in [name for name in parts if name.endswith("_train")]:
        rows = getattr(parts[name], "iloc", parts[name])
        result |= {name: rows[train], name.replace("train", "test"): rows[test]}
    return parts | result
