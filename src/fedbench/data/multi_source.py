"""Several prepared datasets as one, each a site: hospitals that train together (codasca's Tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedbench.data.prepared import FORM, Prepared, load_prepared, read_summary
from fedbench.errors import UserError
from fedbench.spec import DataSpec, digest


class Rows:
    """Rows of several arrays ``[n_i, ...]`` as if they lay in one, without copying them; read by positions."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])
        self.shape: tuple[int, ...] = (sum(map(len, parts)), *parts[0].shape[1:])
        self.dtype = parts[0].dtype

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, positions: np.ndarray, axis: int, out: np.ndarray, mode: str = "clip") -> None:
        """Copy the rows at ``positions`` ``[m]`` into ``out`` [m, ...]; ``axis`` is 0, and they are in range."""
        owner = np.searchsorted(self._ends, positions, side="right")
        for place, part in enumerate(self._parts):
            mine = owner == place
            out[mine] = part[positions[mine] - (self._ends[place] - len(part))]


def load_sources(spec: DataSpec, data_dir: str | Path, inputs: bool = True) -> Prepared:
    """Read the prepared arrays of a data rule: those of its dataset, with those of further sources below them.

    Groups of different sources are different, whatever their numbers.

    Raises:
        UserError: one is not prepared, or they do not fit together; the message names it.
    """
    parts = [load_prepared(name, data_dir, inputs) for name in spec.datasets]
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for name, part in zip(spec.datasets, parts, strict=True):
        for what, mine, its in (
            ("classes", first.classes, part.classes),
            ("shape of a sample", first.summary["shape"], part.summary["shape"]),
            ("type of inputs", first.x_train.dtype, part.x_train.dtype),
            ("features", first.summary.get("features"), part.summary.get("features")),
            ("groups", first.group_train is None, part.group_train is None),
        ):
            if mine != its:
                raise UserError(f"{name} cannot be joined to {spec.dataset}: they differ in {what}.")
        if part.held_train is not None:
            raise UserError(f"{name} cannot be joined: it has a validation part of its own.")
    every = spec.tests == "all"
    tested = parts if every else parts[:1]
    return Prepared(
        x_train=Rows([part.x_train for part in parts]),  # type: ignore[arg-type]  # read by positions alone
        y_train=np.concatenate([part.y_train for part in parts]),
        x_test=Rows([part.x_test for part in tested]),  # type: ignore[arg-type]
        y_test=np.concatenate([part.y_test for part in tested]),
        group_train=_numbered(parts),
        classes=first.classes,
        summary={**first.summary, "sha256": _together([part.summary["sha256"] for part in parts])},
        site_train=np.repeat(np.arange(len(parts)), [len(part.y_train) for part in parts]),
        site_test=np.repeat(np.arange(len(parts)), [len(part.y_test) for part in parts]) if every else None,
        sites=spec.datasets,
    )


def checksum(spec: DataSpec, data_dir: str | Path) -> str:
    """Return the checksum of the prepared arrays: of one dataset, or a digest of those of several."""
    return _together([read_summary(name, data_dir)["sha256"] for name in spec.datasets])


def _together(checksums: list[str]) -> str:
    return checksums[0] if len(checksums) == 1 else f"{FORM}{digest(checksums)}"


def _numbered(parts: Sequence[Prepared]) -> np.ndarray | None:
    """Number the groups through, so that no two sources share one; either all have groups or none."""
    numbers, above = [], 0
    for part in parts:
        if part.group_train is None:
            return None
        numbers.append(np.unique(part.group_train, return_inverse=True)[1] + above)
        above = numbers[-1].max() + 1
    return np.concatenate(numbers)
