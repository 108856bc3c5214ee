"""Runs that start from others: how a paper names them, and what has to be trained first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fedbench.spec import RunSpec, Spec, validated
from fedbench.study.schema import Value

if TYPE_CHECKING:
    from fedbench.study.cells import Cell


class FromCell(Spec):
    """The cell whose model a run starts from: what is not said is as in the run itself, the seed always."""

    method: str
    dataset: str | None = None
    setting: dict[str, Value] = {}


def resolved(
    start: Mapping[str, Any], dataset: str, setting: Mapping[str, Value], label: str,
    resolve: Callable[[str, Mapping[str, Value], str], RunSpec],
) -> dict[str, Any]:  # fmt: skip
    """Replace the ``cell`` in a paper's ``start`` by its run.

    Args:
        start: as written, with a ``cell``.
        dataset, setting: of the run that starts from it.
        label: names that run in messages.
        resolve: (dataset, setting, method) -> the run of a cell.
    """
    cell = validated(FromCell, start["cell"], f"{label}: start.cell")
    rest = {name: value for name, value in start.items() if name != "cell"}
    return rest | {"run": resolve(cell.dataset or dataset, {**setting, **cell.setting}, cell.method)}


def runs_before(cell: Cell) -> list[RunSpec]:
    """List the runs that those of a cell start from, and what these start from: the first to train comes first."""
    by_key: dict[str, RunSpec] = {}
    for run in cell.runs:
        chain = []
        while run.start is not None and run.start.run is not None:
            run = run.start.run
            chain.append(run)
        by_key |= {parent.key: parent for parent in reversed(chain)}
    return list(by_key.values())


def cells_before(cell: Cell, cells: Iterable[Cell]) -> list[Cell]:
    """List those of ``cells`` that train what a cell starts from; what none of them does is trained with the cell."""
    if not any(run.start is not None for run in cell.runs):
        return []
    wanted = {run.key for run in runs_before(cell)}
    return [other for other in cells if not wanted.isdisjoint(run.key for run in other.runs)]
