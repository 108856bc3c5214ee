"""The result of a cell: which runs it has. Their numbers are in the store, and a damaged file is made again from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fedbench import files, sealed_json
from fedbench.store.record import Record
from fedbench.study.cells import Cell

FOLDER = Path("results", "cells")
MADE = ("commit", "code", "versions", "hardware", "device", "data")


def write_cell(cell: Cell, records: Sequence[Record]) -> None:
    """Write the result of a cell to its path: for each run its seed, key, status, code that made it and a checksum.

    The checksum is that of what tables show of a run, so that the file changes when they do: a run that is forgotten
    and trained by other code keeps its key.
    """
    names = ("paper", "scale", "dataset", "setting", "method", "key")
    runs = [
        {
            "seed": run.seed,
            "key": record.key,
            "status": record.status,
            "code": record.provenance.get("code"),
            "checksum": _checksum(record),
        }
        for run, record in zip(cell.runs, records, strict=True)
    ]
    content = {name: getattr(cell, name) for name in names} | {"runs": runs}
    files.write(cell.path, json.dumps(content, indent=1) + "\n")


def _checksum(record: Record) -> str:
    shown = {name: getattr(record, name) for name in ("reason", "metrics", "facts", "files")}
    return sealed_json.checksum(shown | {name: record.provenance.get(name) for name in MADE})


def keys(path: Path) -> dict[int, str]:
    """Return the keys of a result's runs by their seeds; none where it is missing or damaged.

    Raises:
        ReadError: it cannot be read now.
    """
    try:
        return {int(run["seed"]): str(run["key"]) for run in _read(path).get("runs", [])}
    except (ValueError, KeyError, TypeError):
        return {}


def state_of(path: Path) -> tuple[str, list[str | None]]:
    """Return the key of the cell whose result is in ``path``, and by which code each of its runs was made.

    The key is empty where the result is missing or damaged.

    Raises:
        ReadError: it cannot be read now.
    """
    content = _read(path)
    try:
        return str(content["key"]), [run.get("code") for run in content["runs"]]
    except (KeyError, TypeError, AttributeError):
        return "", []


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(files.read(path, sealed_json.LARGEST))
    except (ValueError, RecursionError, FileNotFoundError):
        return {}
    return content if isinstance(content, dict) else {}


def drop(forgotten: Sequence[str]) -> Iterator[Path]:
    """Remove the results that have any of these runs, which are made again; yield their paths."""
    for path in sorted(FOLDER.rglob("*.json")):
        if {*keys(path).values()} & {*forgotten}:
            path.unlink()
            yield path
