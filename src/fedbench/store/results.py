"""The result of a cell: what each of its runs gave, in one sealed file.

Tables are made from these files, so none counts unless it is what was written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedbench import files, seal
from fedbench.errors import shortened
from fedbench.plan.cells import Cell
from fedbench.store.record import Facts, Record

FOLDER = Path("results", "cells")
MADE = ("commit", "code", "versions", "hardware", "device", "data")
DAMAGED = "is not what was written ({}): the next workflow makes it again from its runs"


def entry(seed: int, record: Record) -> dict[str, Any]:
    """Return what a cell's result says of one run."""
    made = {name: record.provenance[name] for name in MADE if name in record.provenance}
    facts = {name: getattr(record, name) for name in ("key", "status", "reason", "metrics", "facts")}
    return {"seed": seed, **facts, "provenance": made}


def write(cell: Cell, records: Sequence[Record]) -> dict[str, Any]:
    """Write the result of a cell to its path, one record per run, and return it."""
    names = ("paper", "scale", "dataset", "setting", "method", "key")
    runs = [entry(run.seed, record) for run, record in zip(cell.runs, records, strict=True)]
    result = {name: getattr(cell, name) for name in names} | {"runs": runs}
    seal.write(cell.path, result)
    return result


def read(path: Path) -> list[dict[str, Any]]:
    """Return the runs of the result in ``path``; none where there is no such file.

    Raises:
        ValueError: it is not what was written; the message says so and the cure.
        ReadError: it cannot be read now.
    """
    marked = files.mark(path)
    return _read(path, marked) if marked else []


@functools.lru_cache(maxsize=4096)
def _read(path: Path, _mark: files.Mark) -> list[dict[str, Any]]:
    try:
        return [_checked(run) for run in _runs(seal.read(path))]
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(DAMAGED.format(error)) from None


def _runs(content: dict[str, Any]) -> list[dict[str, Any]]:
    runs = content.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) and "key" in run for run in runs):
        raise ValueError("it lists no runs")
    return runs


def state_of(path: Path) -> tuple[str, list[str | None]]:
    """Return the key of the cell whose result is in ``path``, and by which code each of its runs was made.

    The key is empty where there is no result, or it is not what was written.

    Raises:
        ReadError: it cannot be read now.
    """
    try:
        content = seal.read(path)
        return str(content.get("key")), [run.get("provenance", {}).get("code") for run in _runs(content)]
    except (ValueError, FileNotFoundError):
        return "", []


class _Run(BaseModel):
    """One run of a result. A checksum says who wrote a file's bytes, not that they mean something."""

    model_config = ConfigDict(strict=True)

    seed: Annotated[int, Field(ge=0)]
    key: str
    status: Literal["finished", "diverged"]
    reason: str = ""
    metrics: dict[str, float | None]
    facts: Facts = {}
    provenance: dict[str, Any] = {}


def _checked(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run as it is if it has everything a table reads.

    Raises:
        ValueError: it has not.
    """
    try:
        _Run.model_validate(run)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "a run"
        raise ValueError(f"{shortened(place, 60)}: {first['msg']}") from None
    return run


def set_damaged_aside() -> Iterator[tuple[Path, str]]:
    """Rename results that are not what was written, so that they are made again; yield each and why."""
    for path in sorted(FOLDER.rglob("*.json")):
        try:
            if files.mark(path):
                _read(path, files.mark(path) or ())
        except ValueError as error:
            path.replace(path.with_name(f"{path.name}.damaged"))
            yield path, str(error)


def drop(keys: Sequence[str]) -> Iterator[Path]:
    """Remove the results that show any of these runs, which are made again; yield their paths."""
    for path in sorted(FOLDER.rglob("*.json")):
        try:
            shown = {run["key"] for run in _runs(seal.read(path))}
        except (ValueError, FileNotFoundError):
            continue
        if shown & {*keys}:
            path.unlink()
            yield path
