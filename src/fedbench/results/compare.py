"""Measured beside published: every number of a table as a row of one frame, with print, difference and verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from fedbench.results import aggregate, rates
from fedbench.results.frame import COSTS, Compared, Measured, Printed, frame_of
from fedbench.results.gains import gains
from fedbench.results.names import MADE_OF, SLOPE, axis_text, signed
from fedbench.results.places import Place, axes
from fedbench.results.published import load_published
from fedbench.results.runs import runs_of_table
from fedbench.results.shipped import Shipped
from fedbench.results.statistics import least_spread
from fedbench.results.verdicts import judged
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.references import GAINS, TRAINING
from fedbench.study.schema import Paper, TableSpec, Value

PUBLISHED = {"printed_text": "published_mean", "printed_std_text": "published_std", "note": "published_note"}
"""What a table's CSV calls the digits of print and what is said of them."""
IN_CSV = (
    "metric", "mean", "std", "values", "paces", "n_seeds", "n_wanted", "status", "reason", *PUBLISHED.values(),
    "difference", "half_width", "verdict", "basis",
    # seconds differ from run to run, and a table's bytes do not: they are in exports and on the page
    *COSTS[:-1], "hardware",
    "scale", "commit", "shipped", "device_mean", "device_variance", "source", "key",
)  # fmt: skip
"""What a table's CSV has after its axes."""


def comparisons(
    plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped | None = None
) -> pd.DataFrame:
    """Hold every number of a table against print: a row for each, in the order of its axes and metrics.

    ``shipped`` holds the runs that travel with the repository, where they have been read already.

    Returns:
        A frame with the columns of :class:`~fedbench.results.frame.Compared`.
    """
    paper, grid, bound = plan.study, axes(plan, spec), spec.kind == "rates"
    table = load_published(paper.key, spec.published, paper.measures) if spec.published else None
    printed = table.at(grid, spec.metrics) if table else {}
    measured = _measured(plan, spec, grid, cells, shipped or Shipped(plan))
    numbers = {(one.place, one.method, one.metric): one for one in measured}
    frame = frame_of(_rows(plan, spec, grid, numbers, printed), Compared)
    if bound:  # which are whole numbers in print, and shown as their metrics are
        frame["print_digits"] = math.nan
    return judged(_with_spreads(paper, frame), plan.config.tolerance, bound)


def _measured(
    plan: Plan, spec: TableSpec, grid: Mapping[str, Sequence[Value]], cells: Sequence[Cell], shipped: Shipped
) -> list[Measured]:
    """Return the numbers of ours that a table may show, also those that are made of several cells."""
    if spec.kind == "rates":
        measured = aggregate.measurements(rates.rates_of_cells(cells, spec, shipped), spec.metrics)
    else:
        measured = aggregate.measurements(runs_of_table(plan, spec, cells, shipped), spec.metrics)
        measured = [number for number in measured if number.shipped or number.scale == plan.scale.name]
        if spec.pool:
            values = plan.study.values(spec)
            measured = aggregate.pool(measured, spec.pool, math.prod(len(values[name]) for name in spec.pool))
    if spec.references:
        measured += gains(plan, measured, spec.references[0])
    if spec.average is not None:
        over = spec.datasets if spec.average == "dataset" else grid[spec.average][:-1]
        measured += aggregate.averages(measured, spec.average, over)
    if spec.slope is not None:
        measured += aggregate.slopes(measured, spec.slope, grid[spec.slope][:-1])
    return measured


def _rows(
    plan: Plan,
    spec: TableSpec,
    grid: Mapping[str, Sequence[Value]],
    measured: Mapping[tuple[Place, str, str], Measured],
    printed: Mapping[tuple[Place, str], Printed],
) -> Iterator[Compared]:
    """Yield each number of ours in the order of the axes; none at a place where the table has no cell."""
    paper, scale = plan.study, plan.scale.name
    # of a dataset that is our addition nothing can be compared with print
    added = {name for name, entry in paper.datasets.items() if not entry.printed}
    for values in itertools.product(*grid.values()):
        at = dict(zip(grid, values, strict=True))
        place, method, slope = tuple(at.items())[:-1], str(at["method"]), SLOPE in values
        has = paper.methods[method].has({axis: value for axis, value in at.items() if value not in MADE_OF})
        if not has or (slope and (place, method, spec.metrics[0]) not in measured):
            continue
        for metric in spec.metrics:
            number, measure = (place, method, metric), paper.measure(metric)
            ours = measured.get(number) or Measured(scale, *number, reason=f"not part of scale {scale}")
            print_ = printed.get((tuple(at.items()), metric)) if at["dataset"] not in added else None
            of_scale, digits = number in measured and ours.scale == scale, 2 if slope else measure.decimals
            late = measure.matters > 0 and abs(ours.pace) > measure.matters and not math.isnan(ours.mean)
            yield Compared(
                **vars(ours), **vars(print_ or Printed()), at=at, dataset=str(at["dataset"]), slope=slope,
                gain=at.get(TRAINING) in GAINS, of_scale=of_scale, shown=of_scale or ours.shipped,
                moving=signed(ours.pace, digits) if late else "", label=measure.label, sign=measure.sign,
                matters=measure.matters, digits=digits, has_print=print_ is not None,
            )  # fmt: skip


def _with_spreads(paper: Paper, frame: pd.DataFrame) -> pd.DataFrame:
    """Add what follows from the numbers of a table together: spreads to be believed, digits, places in words.

    A spread is at least what the steps of its metric give, of all values at its place; a share can be its ends, too.
    What has no ends moves in no steps, nor does a slope.
    """
    least = pd.Series(0.0, frame.index)
    for (_, metric), of_place in frame.groupby(["place", "metric"], sort=False)["values"]:
        if ends := paper.measure(str(metric)).ends:
            least[of_place.index] = least_spread(
                [*ends, *(x for by_seed in of_place for x in by_seed.values())]
            )
    axes_ = frame["at"].iloc[0] if len(frame) else ()
    varying = [axis for axis in axes_ if len({at[axis] for at in frame["at"]}) > 1]
    names = [[axis_text(paper, axis, at[axis]) for axis in varying] for at in frame["at"]]
    if frame["metric"].nunique() > 1:
        names = [[*of, label] for of, label in zip(names, frame["label"], strict=True)]
    digits = frame.groupby("metric")["print_digits"].transform("max").fillna(frame["digits"])
    return frame.assign(
        spread_counted=frame["std"].clip(lower=least.where(~frame["slope"], 0.0)),
        digits=digits.astype(int),
        where=[", ".join(of) for of in names],
    )


def unknown_names(paper: Paper, spec: TableSpec) -> list[str]:
    """List the datasets, methods and metrics of a table's published file that nothing of the paper is called."""
    if not spec.published:
        return []
    metrics = {metric for table in paper.tables.values() for metric in table.metrics}
    known = {"dataset": {*paper.datasets, ""}, "method": {*paper.methods, ""}, "metric": metrics}
    rows = load_published(paper.key, spec.published, paper.measures).rows
    said = ((column, name) for column in known if column in rows for name in rows[column].unique())
    return [f"{column} {name}" for column, name in said if name not in known[column]]


def tidy(frame: pd.DataFrame, paper: str, table: str) -> pd.DataFrame:
    """Return the machine-readable form of a table: one row per number, nothing rounded away."""
    by_seed = {name: frame[name].map(_by_seed) for name in ("values", "paces")}
    places = pd.DataFrame([{"paper": paper, "table": table, **at} for at in frame["at"]], frame.index)
    columns = [*IN_CSV, "low", "high"] if frame["gain"].any() else [*IN_CSV]
    return pd.concat([places, frame.assign(**by_seed).rename(columns=PUBLISHED)[columns]], axis=1)


def _by_seed(values: Mapping[int, float]) -> str:
    """Return the value of each seed as ``0:0.9786 1:0.9791``."""
    return " ".join(f"{seed}:{value:.6g}" for seed, value in values.items())
