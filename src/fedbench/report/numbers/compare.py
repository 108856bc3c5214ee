"""Measured beside published: every number of a table as a row of one frame, with print, difference and verdict."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from fedbench.measures import Measure
from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers import combine, rates
from fedbench.report.numbers.aggregate import Repeat, measurements, summarised
from fedbench.report.numbers.axes import axes
from fedbench.report.numbers.names import MADE_OF, SLOPE, axis_text, signed
from fedbench.report.numbers.prints import print_of
from fedbench.report.numbers.published import load
from fedbench.report.numbers.rows import COSTS, NUMBER, Measured, frame_of
from fedbench.report.numbers.runs import runs_of_table
from fedbench.report.numbers.shipped import Shipped
from fedbench.report.numbers.verdicts import judged
from fedbench.results.places import Place
from fedbench.results.statistics import least_spread

PUBLISHED = {"printed_text": "published_mean", "printed_std_text": "published_std", "note": "published_note"}
"""What a table's CSV calls the digits of print and what is said of them."""
IN_CSV = (
    "metric", "mean", "std", "values", "paces", "n_seeds", "n_wanted", "status", "reason", *PUBLISHED.values(),
    "difference", "half_width", "verdict", "basis",
    # seconds differ from run to run, and a table's bytes do not: they are in exports and on the page
    *COSTS[:-1], "hardware", "equal_costs",
    "scale", "commit", "shipped", "device_mean", "device_variance", "source", "key",
)  # fmt: skip
"""What a table's CSV has after its axes."""
TEXTS = ("printed_text", "printed_std_text", "note", "doubt", "spread")
"""Columns of print that hold words, empty where nothing is printed; numbers are NaN there."""


def comparisons(
    plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped | None = None
) -> pd.DataFrame:
    """Hold every number of a table against print: a row for each, in the order of its axes and metrics.

    ``shipped`` holds the runs that travel with the repository, where they have been read already.

    Returns:
        A frame with the columns of :class:`~fedbench.report.numbers.rows.Compared` up to ``basis``.
    """
    paper = plan.study
    frame = _numbers(plan, spec, _measured(plan, spec, cells, shipped or Shipped(plan)))
    print_ = print_of(paper, spec, axes(plan, spec), spec.metrics)
    # of a dataset that is our addition nothing can be compared with print
    ours = [name for name, entry in paper.datasets.items() if not entry.printed]
    print_ = print_.loc[[place[0][1] not in ours for place in print_["place"]]]
    frame = frame.merge(print_, "left", [*NUMBER])
    has = frame["print_digits"].notna()
    frame = frame.assign(has_print=has, **{name: frame[name].where(has, "") for name in TEXTS})
    frame = judged(_with_measures(paper, spec, frame), plan.config.tolerance, bound=spec.kind == "rates")
    return frame.copy()  # columns of one type in one array again


def _numbers(plan: Plan, spec: TableSpec, measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each number of ours in the order of the axes; none at a place where the table has no cell."""
    paper, scale, grid, rows = plan.study, plan.scale.name, axes(plan, spec), []
    known = _at(measured)
    for values in itertools.product(*grid.values()):
        at = dict(zip(grid, values, strict=True))
        place, method = tuple(at.items())[:-1], str(at["method"])
        has = paper.methods[method].has({axis: value for axis, value in at.items() if value not in MADE_OF})
        slope = SLOPE in values
        if has and (not slope or (place, method, spec.metrics[0]) in known):
            rows += [(at, place, at["dataset"], method, metric, slope) for metric in spec.metrics]
    frame = frame_of(
        rows, {"at": dict, "place": tuple, "dataset": str, "method": str, "metric": str, "slope": bool}
    )
    ours = measured.assign(of_scale=measured["scale"] == scale)
    if lacking := [at for at in _at(frame) if at not in known]:
        reason = f"not part of scale {scale}"
        nothing = summarised(Measured(scale, *at, reason=reason) for at in lacking)
        ours = pd.concat([ours, nothing.assign(of_scale=False)])
    frame = frame.merge(ours, on=[*NUMBER])
    return frame.assign(shown=frame["of_scale"] | frame["shipped"])


def _at(numbers: pd.DataFrame) -> dict[tuple[Place, str, str], None]:
    """Return where numbers stand: their places, methods and metrics."""
    return dict.fromkeys(zip(*(numbers[name] for name in NUMBER), strict=True))


def _with_measures(paper: Paper, spec: TableSpec, frame: pd.DataFrame) -> pd.DataFrame:
    """Add what is known of the metrics, the places in words, and by how much numbers were still changing.

    That is empty where it is not known or no matter.
    """
    known = {metric: paper.measure(metric) for metric in spec.metrics}
    measures = [known[metric] for metric in frame["metric"]]
    label = [measure.label for measure in measures]
    matters = pd.Series([measure.matters for measure in measures], frame.index, dtype=float)
    decimals = pd.Series([measure.decimals for measure in measures], frame.index, dtype=int)
    decimals = decimals.mask(frame["slope"], 2)
    digits = frame.groupby("metric")["print_digits"].transform("max").fillna(decimals)
    late = frame["mean"].notna() & (matters > 0) & (frame["pace"].abs() > matters)
    paces = zip(frame["pace"], decimals, late, strict=True)
    axes_ = frame["at"].iloc[0] if len(frame) else ()
    varying = [axis for axis in axes_ if len({at[axis] for at in frame["at"]}) > 1]
    names = [[axis_text(paper, axis, at[axis]) for axis in varying] for at in frame["at"]]
    several = frame["metric"].nunique() > 1
    return frame.assign(
        spread_counted=frame["std"].clip(lower=_least_spreads(frame, known)),
        label=label,
        sign=[measure.sign for measure in measures],
        matters=matters,
        digits=digits.astype(int),
        moving=[signed(pace, int(places)) if moves else "" for pace, places, moves in paces],
        where=[", ".join([*of, text] if several else of) for of, text in zip(names, label, strict=True)],
    )


def _least_spreads(frame: pd.DataFrame, measures: Mapping[str, Measure]) -> pd.Series[float]:
    """Return the least spread of each number to be believed, of all values that its metric has at its place.

    A share can be its ends, too; what has no ends moves in no steps, nor does a slope.
    """
    values: dict[tuple[Place, str], list[float]] = {}
    for place, metric, by_seed in zip(frame["place"], frame["metric"], frame["values"], strict=True):
        values.setdefault((place, metric), [*measures[metric].ends]).extend(by_seed.values())
    least = {at: least_spread(of) if measures[at[1]].ends else 0.0 for at, of in values.items()}
    of_rows = [least[at] for at in zip(frame["place"], frame["metric"], strict=True)]
    return pd.Series(of_rows, frame.index, dtype=float).where(~frame["slope"], 0.0)


def _measured(plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped) -> pd.DataFrame:
    """Return the numbers of ours that a table may show, also those that are made of several cells."""
    if spec.kind == "rates":
        measured = measurements(rates.table_of_rates(cells, spec, shipped), spec.metrics)
    else:
        measured = measurements(runs_of_table(plan, spec, cells, shipped), spec.metrics)
        measured = measured[measured["shipped"] | (measured["scale"] == plan.scale.name)]
        measured = combine.pool(measured, spec.pool) if spec.pool else measured
    grid = axes(plan, spec)
    if spec.average is not None:
        over = spec.datasets if spec.average == "dataset" else grid[spec.average][:-1]
        measured = pd.concat([measured, combine.averages(measured, spec.average, over)])
    if spec.slope is not None:
        measured = pd.concat([measured, combine.slopes(measured, spec.slope, grid[spec.slope][:-1])])
    return measured


def unknown_names(paper: Paper, spec: TableSpec) -> list[str]:
    """List the names in a table's published file that nothing of the paper is called."""
    if not spec.published:
        return []
    metrics = {metric for table in paper.tables.values() for metric in table.metrics}
    return load(paper.key, spec.published, paper.measures).unknown_names(
        {"dataset": paper.datasets, "method": paper.methods}, metrics, paper.values(spec)
    )


def tidy(frame: pd.DataFrame, paper: str, table: str) -> pd.DataFrame:
    """Return the machine-readable form of a table: one row per number, nothing rounded away."""
    by_seed = {name: frame[name].map(_by_seed) for name in ("values", "paces")}
    places = pd.DataFrame([{"paper": paper, "table": table, **at} for at in frame["at"]], frame.index)
    return pd.concat([places, frame.assign(**by_seed).rename(columns=PUBLISHED)[[*IN_CSV]]], axis=1)


def _by_seed(values: Mapping[Repeat, float]) -> str:
    """Return the value of each seed as ``0:0.9786 1:0.9791``."""
    return " ".join(f"{seed}:{value:.6g}" for seed, value in values.items())
