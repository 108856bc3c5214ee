"""What the tables of a study print, at their places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench.results.frame import NUMBER, Printed
from fedbench.results.places import Place, axes_of, members, shown
from fedbench.results.published import load
from fedbench.study.schema import Paper, TableSpec, Value


def print_of(
    paper: Paper, spec: TableSpec, axes: Mapping[str, Sequence[Value]], metrics: Sequence[str]
) -> dict[tuple[Place, str, str], Printed]:
    """Return what a table prints of some metrics by place, method and metric; ``axes`` end with the method.

    Bounds are printed as whole numbers and shown as their metrics are.
    """
    known = load(paper.key, spec.published, paper.measures).at(axes, metrics) if spec.published else {}
    bounds = spec.kind == "rates"
    return {
        (tuple(place), str(method), metric): replace(number, print_digits=math.nan) if bounds else number
        for ((*place, (_, method)), metric), number in known.items()
    }


def printed(paper: Paper, targets: Sequence[str], metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return what tables print of some metrics, else of their own, as if it were one seed."""
    rows = list[tuple[str | Place | float, ...]]()
    for target in targets:
        spec = shown(paper, target)
        if isinstance(spec, TableSpec) and spec.published:
            axes: dict[str, list[Value]] = {**axes_of(paper, spec), "method": [*spec.methods]}
            numbers = print_of(paper, spec, axes, metrics or spec.metrics).items()
            rows += [(target, *at, 0, one.printed, math.nan) for at, one in numbers if one.printed_text]
    return pd.DataFrame(rows, columns=["target", *NUMBER, "seed", "value", "tried"])


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
