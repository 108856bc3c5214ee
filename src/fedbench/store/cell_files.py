"""The result of a cell: which runs it has, and forgetting them.

Their numbers are in the store, and a damaged file is made again from it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedbench import files, sealed_json
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store import code, journal
from fedbench.store.record import Record
from fedbench.store.runs import Store
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


def state_of(path: Path) -> tuple[str, dict[str, str | None]]:
    """Return the key of the cell whose result is in ``path``, and by which code each run was made, by the run's key.

    The key is empty where the result is missing or damaged.

    Raises:
        ReadError: it cannot be read now.
    """
    content = _read(path)
    try:
        return str(content["key"]), {run["key"]: run["code"] for run in content["runs"] if "code" in run}
    except (KeyError, TypeError, AttributeError):
        return "", {}


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


def forget(cells: Sequence[Cell], store: Store) -> Iterator[str]:
    """Remove the runs of cells from the store, unfinished ones too, and all results that show them; yield what was
    removed.

    The workflow then finds the results missing and trains the cells again, those too that share a run with them. A
    run that is being trained is waited for.
    """
    for cell in cells:
        gone = sum(_forget_run(run.key, store) for run in cell.runs)
        shown = cell.path.exists()
        cell.path.unlink(missing_ok=True)
        if gone or shown:
            yield f"{cell.name}, scale {cell.scale}: {gone} of {len(cell.runs)} runs forgotten"
    yield from _made_again(run.key for cell in cells for run in cell.runs)


def forget_other_code(store: Store, cells: Sequence[Cell] | None = None) -> Iterator[str]:
    """Remove the runs that other code made than today's, and all results that show them; yield what was removed.

    Of ``cells`` with every seed that is stored; without them all of the store, of any study and scale, and trials too.
    """
    wanted = None if cells is None else {cell.runs[0].seeded(0).key for cell in cells}
    chosen = dict[str, RunSpec]()
    stored = store.keys()
    for key in stored:
        with contextlib.suppress(UserError, ValidationError):  # nothing shows a damaged run, or an old one
            if (record := store.record(key)) is not None:
                run = RunSpec.model_validate(record.spec)
                asked = wanted is None or run.seeded(0).key in wanted
                if asked and code.differs(run, record.provenance.get("code")):
                    chosen[key] = run
    gone = Counter(
        f"{run.method} on {run.data.dataset}" for key, run in chosen.items() if _forget_run(key, store)
    )
    yield from (f"{what}: {n} run{'s' * (n > 1)} forgotten" for what, n in sorted(gone.items()))
    yield from _made_again(chosen)


def _made_again(forgotten: Iterable[str]) -> Iterator[str]:
    yield from (f"{path} showed one of them and is made again" for path in drop([*forgotten]))


def other_code(cell: Cell, store: Store) -> list[bool]:
    """Say of each run of a cell that the store has, by its result or else by itself, whether other code made it."""
    _, codes = state_of(cell.path)

    def differs(run: RunSpec) -> bool:
        if run.key not in codes:
            return by_other_code(run, store)
        return store.has(run.key) and code.differs(run, codes[run.key])

    return [differs(run) for run in cell.runs]


def by_other_code(run: RunSpec, store: Store) -> bool:
    """Say whether a run is in the store and other code made it than today's, which its key does not see."""
    with contextlib.suppress(UserError):  # a damaged run: who takes its numbers says so
        record = store.record(run.key)
        return record is not None and code.differs(run, record.provenance.get("code"))
    return False


def _forget_run(key: str, store: Store) -> bool:
    if not store.path(key).exists() and not store.checkpoint(key).parent.exists():
        return False
    with store.claim(key) as folder:
        if store.path(key).exists():
            aside = folder / "forgotten"
            store.path(key).replace(aside)  # in one step: no reader sees half a run
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
        journal.note(store.root, "forgotten", key)
    return True
