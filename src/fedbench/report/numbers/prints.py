"""What a study prints, as one frame: a row for each number, with the table that prints it as a part of its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fedbench.plan.schema import Paper, TableSpec, Value
from fedbench.report.numbers.published import load
from fedbench.report.numbers.rows import NUMBER, Printed, columns_of, frame_of
from fedbench.results.places import Place, axes_of, members, shown


def print_of(
    paper: Paper, spec: TableSpec, axes: Mapping[str, Sequence[Value]], metrics: Sequence[str]
) -> pd.DataFrame:
    """Return what a table prints of some metrics at the places of its axes, a row for each number.

    The columns are :data:`NUMBER` and those of :class:`~fedbench.report.numbers.rows.Printed`; bounds are printed as
    whole numbers and shown as their metrics are.
    """
    known = load(paper.key, spec.published, paper.measures).at(axes, metrics) if spec.published else {}
    rows = [
        (tuple(place), method, metric, *vars(number).values())
        for ((*place, (_, method)), metric), number in known.items()
    ]
    frame = frame_of(rows, dict.fromkeys(NUMBER, object) | columns_of(Printed))
    if spec.kind == "rates":
        frame["print_digits"] = max(paper.measure(metric).decimals for metric in metrics)
    return frame


def printed(paper: Paper, targets: Sequence[str], metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return what tables print of some metrics, else of their own, as if it were one seed."""
    parts = []
    for target in targets:
        spec = shown(paper, target)
        if isinstance(spec, TableSpec) and spec.published:
            axes: dict[str, list[Value]] = {**axes_of(paper, spec), "method": [*spec.methods]}
            numbers = print_of(paper, spec, axes, metrics or spec.metrics).dropna(subset="printed")
            parts.append(numbers.assign(target=target, seed=0, value=numbers["printed"], tried=math.nan))
    if not parts:
        return pd.DataFrame(columns=["target", *NUMBER, "seed", "value", "tried"])
    return pd.concat(parts, ignore_index=True)


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
