"""What a study prints, as one frame: a row for each number, with the table that prints it as a part of its place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fedbench.plan.schema import Paper, TableSpec, Value
from fedbench.report.numbers.published import load
from fedbench.results.places import Place, axes_of, members, shown

COLUMNS = ["target", "place", "method", "metric", "seed", "value", "tried"]


def printed(paper: Paper, targets: Sequence[str], metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return what tables print of some metrics, else of their own, as if it were one seed."""
    rows = []
    for target in targets:
        spec = shown(paper, target)
        if not isinstance(spec, TableSpec) or not spec.published:
            continue
        table = load(paper.key, spec.published, paper.measures)
        axes: dict[str, list[Value]] = {**axes_of(paper, spec), "method": [*spec.methods]}
        rows += [
            (target, tuple(place), method, metric, 0, number.mean, math.nan)
            for ((*place, (_, method)), metric), number in table.at(axes, metrics or spec.metrics).items()
            if number.mean is not None
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def printed_in(numbers: pd.DataFrame, targets: Sequence[str], metric: str) -> pd.DataFrame:
    """Return what some tables print of a metric; of a place that several have, the first one's value."""
    order = numbers["target"].map({target: at for at, target in enumerate(targets)})
    chosen = numbers[order.notna() & (numbers["metric"] == metric)]
    return chosen.iloc[np.argsort(order[chosen.index], kind="stable")].drop_duplicates(["place", "method"])


def printed_results(paper: Paper) -> dict[tuple[Place, str, str], float]:
    """Return what tables of results print by place, method and metric; of what several print, the first one's value.

    A dataset that is not the study's own has none, nor a setting that no table shows.
    """
    numbers = printed(paper, [name for name, spec in paper.tables.items() if spec.kind == "results"])
    values: dict[tuple[Place, str, str], float] = {}
    columns = (numbers[name] for name in ("place", "method", "metric", "value"))
    for place, method, metric, value in zip(*columns, strict=True):
        if paper.datasets[str(place[0][1])].printed:
            for member in members(place):
                values.setdefault((member, method, metric), value)
    return values
