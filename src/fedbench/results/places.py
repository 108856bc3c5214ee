"""Where numbers stand: a dataset and a setting, as tables, claims and print name them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from fedbench.study.schema import FigureSpec, Paper, TableSpec, Value

Place = tuple[tuple[str, Value], ...]
"""A dataset and a setting: (axis, value) for each axis but the method; in effects without those a claim runs over."""


class Pooled(str):
    """The values of a setting whose cells a table pools as repeats of one number, as one value: ``0, 1, 2``."""

    members: tuple[Value, ...]

    def __new__(cls, members: Iterable[Value]) -> Pooled:
        """Join the values."""
        values = tuple(members)
        made = super().__new__(cls, ", ".join(map(str, values)))
        made.members = values
        return made


def shown(paper: Paper, target: str) -> TableSpec | FigureSpec:
    """Return a table or figure by its name."""
    return paper.tables[target] if target in paper.tables else paper.figures[target]


def places_of(paper: Paper, targets: Iterable[str], datasets: Iterable[str] | None = None) -> list[Place]:
    """List the places of tables and figures, each once; on ``datasets`` instead of their own.

    What a table pools is one place, as it is one number in print; a setting that exponents are fitted over is no axis.
    """
    places: dict[Place, None] = {}
    for target in targets:
        axes = axes_of(paper, shown(paper, target), datasets)
        places |= dict.fromkeys(
            tuple(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        )
    return list(places)


def axes_of(
    paper: Paper, spec: TableSpec | FigureSpec, datasets: Iterable[str] | None = None
) -> dict[str, list[Value]]:
    """Return the values of the axes of a table or figure but the method, as :func:`places_of` combines them."""
    pool = spec.pool if isinstance(spec, TableSpec) else []
    rows: list[Value] = [*(spec.datasets if datasets is None else datasets)]
    axes = {"dataset": rows, **paper.values(spec)}
    if spec.kind == "rates":
        return {name: values for name, values in axes.items() if name not in pool}
    return axes | {name: [Pooled(axes[name])] for name in pool}


def members(place: Place) -> list[Place]:
    """List the places of single cells that one stands for."""
    values = (
        [(axis, member) for member in (value.members if isinstance(value, Pooled) else [value])]
        for axis, value in place
    )
    return list(itertools.product(*values))


def place_of(dataset: str, setting: Mapping[str, Value]) -> Place:
    """Return a dataset and a setting as a place."""
    return (("dataset", dataset), *setting.items())


def without(places: Iterable[Place], axes: Iterable[str]) -> list[Place]:
    """Return the places without some axes, each once."""
    dropped = set(axes)
    return list(dict.fromkeys(tuple(pair for pair in place if pair[0] not in dropped) for place in places))


def words_of(place: Sequence[tuple[str, Value]]) -> str:
    """Name a place by its dataset and settings."""
    return ", ".join([str(place[0][1]), *(f"{name} = {value}" for name, value in place[1:])])
