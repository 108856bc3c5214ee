"""Forgetting results: a run's key does not see the code of a method, so a change of code needs the runs made anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from fedbench.spec import RunSpec
from fedbench.store import cell_files, code, journal
from fedbench.store.runs import Store
from fedbench.study.cells import Cell


def forget(cells: Sequence[Cell], store: Store, other_code: bool = False) -> Iterator[str]:
    """Remove the runs of cells from the store, unfinished ones too, and all results that show them; yield what was
    removed.

    The workflow then finds the results missing and trains the cells again, those too that share a run with them. A
    run that is being trained is waited for. With ``other_code`` only runs go that other code made than today's.
    """
    keys = list[str]()
    for cell in cells:
        chosen = [run.key for run in cell.runs if not other_code or _by_other_code(run, store)]
        gone = sum(_forget_run(key, store) for key in chosen)
        shown = bool(chosen) and cell.path.exists()
        if shown:
            cell.path.unlink()
        if gone or shown:
            yield f"{cell.name}, scale {cell.scale}: {gone} of {len(cell.runs)} runs forgotten"
        keys += chosen
    for path in cell_files.drop(keys):
        yield f"{path} showed one of them and is made again"


def _by_other_code(run: RunSpec, store: Store) -> bool:
    record = store.load(run.key)
    return record is not None and code.differs(run, record.provenance.get("code"))


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
