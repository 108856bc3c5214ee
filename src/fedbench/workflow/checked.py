"""Cells that a dry run has checked: the next one has nothing new to say until something that the check reads changes.

The check takes PyTorch and every network. Training makes it again whatever stands here, so this need not see what
seldom changes, such as the version of PyTorch.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from fedbench.data import datasets
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.plan.configuration import CONFIG_DIR
from fedbench.specs import digest
from fedbench.workflow.sources import LIBRARY

FILE = Path(".snakemake/fedbench-checked")
"""Two digests a line: of the code and configuration, and of cells in which these had no mistake."""


def passed(cells: Sequence[Cell]) -> bool:
    """Say whether these cells had no mistake before, with the code, configuration and data of now."""
    line = _line(cells)
    return line is not None and line in _lines()


def note(cells: Sequence[Cell]) -> None:
    """Note that these cells have no mistake; lines of another code or configuration go."""
    line = _line(cells)
    if line is not None:
        kept = [old for old in _lines() if old.split()[0] == line.split()[0] and old != line]
        with contextlib.suppress(OSError):  # it saves time: a folder that takes no file is no obstacle
            FILE.parent.mkdir(exist_ok=True)
            FILE.write_text("\n".join([*kept, line]))


def _lines() -> list[str]:
    return FILE.read_text().splitlines() if FILE.is_file() else []


def _line(cells: Sequence[Cell]) -> str | None:
    """Return the line of some cells; None where it would miss something: a file of weights, or a package's own code."""
    if any(run.start for cell in cells for run in cell.runs):
        return None
    if any(group.startswith("fedbench.") for group in entry_points().groups):
        return None
    try:
        data = {
            name: datasets.content(name)
            for name in dict.fromkeys(name for cell in cells for name in cell.runs[0].data.datasets)
        }
    except UserError:
        return None  # the check says it
    code = _state(itertools.chain(LIBRARY.rglob("*.py"), CONFIG_DIR.rglob("*.yaml")))
    return f"{code} {digest([data, [[cell.name, cell.key] for cell in cells]])}"


def _state(paths: Iterable[Path]) -> str:
    """Digest the names, sizes and times of files."""
    states = sorted((str(path), path.stat()) for path in paths)
    return digest([[name, state.st_size, state.st_mtime_ns] for name, state in states])
