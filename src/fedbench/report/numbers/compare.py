"""Measured beside published: every number of a table with its printed value, difference and verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench.measures import Measure
from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec, Value
from fedbench.report.numbers import combine, rates
from fedbench.report.numbers.aggregate import measurements
from fedbench.report.numbers.axes import axes
from fedbench.report.numbers.combine import Measured, Place
from fedbench.report.numbers.measurement import Measurement
from fedbench.report.numbers.names import AVERAGE, MADE_OF, SLOPE, signed
from fedbench.report.numbers.published import Published, PublishedTable, load
from fedbench.report.numbers.rows import FINISHED
from fedbench.report.numbers.runs import table_of_runs
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.print_verdicts import MATCHES, hold_against_print
from fedbench.results.statistics import rank_agreement

NO_REFERENCE = "no reference"
"""The verdict on a number that the paper has no value for."""
BOUND = "bound"
"""The verdict where the paper prints a bound of the theory: a measurement is not compared with it."""
OURS = ("mean", "std", "values_text", "paces_text", "n_seeds", "n_wanted", "status", "reason")
MADE = ("scale", "commit", "shipped", "device_mean", "device_variance", "source", "key")
"""Columns of a table's CSV that say what was measured, and how it was made."""


@dataclass(frozen=True)
class Verdict:
    """How a measured mean stands to a printed one, as :mod:`fedbench.results.print_verdicts` judges it.

    ``kind`` is one of its words, no reference, bound, or the status of a cell without a mean (not run, diverged, ...).
    """

    kind: str
    difference: float | None = None
    half_width: float | None = None
    basis: str = ""


@dataclass(frozen=True)
class Compared:
    """One number of a table: ours and the published one, the verdict, whether the scale runs it."""

    place: dict[str, Value]
    metric: str
    measured: Measurement
    published: Published | None
    verdict: Verdict
    here: bool
    measure: Measure

    @property
    def shown(self) -> bool:
        """Whether there is a number of ours: trained here, still to be, or shipped with the repository."""
        return self.here or self.measured.shipped

    @property
    def moving(self) -> str:
        """By how much it still changed in the last fifth of training, empty where that is not known or no matter."""
        pace, matters = self.measured.pace, self.measure.matters
        known = math.isfinite(self.measured.mean)
        return signed(pace, self.measure.decimals) if known and abs(pace) > matters > 0 else ""

    @property
    def mean(self) -> float:
        """The mean over all wanted seeds, NaN for any other status (a part of the seeds is never ranked)."""
        return self.measured.mean if self.measured.status == FINISHED else math.nan

    @property
    def printed(self) -> float:
        """The published value, NaN where there is none."""
        found = self.published.mean if self.published else None
        return math.nan if found is None else found


def compare(
    plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped | None = None
) -> tuple[list[Compared], PublishedTable | None]:
    """Hold every number of a table against its published value, in the order of its axes and metrics.

    The published table comes with them, unless it has nothing on any of these numbers. ``shipped`` holds the runs that
    travel with the repository, where they have been read already.
    """
    paper, grid = plan.study, axes(plan, spec)
    table = load(paper.key, spec.published, paper.measures) if spec.published else None
    printed = table.at(grid, spec.metrics) if table else {}
    measured = _measured(plan, spec, cells, shipped or Shipped(plan))
    places = (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    result = [item for place in places for item in _at(place, plan, spec, measured, printed)]
    return result, table if any(item.published for item in result) else None


def _at(
    place: dict[str, Value], plan: Plan, spec: TableSpec, measured: Measured,
    printed: Mapping[tuple[Place, str], Published],
) -> Iterator[Compared]:  # fmt: skip
    """Yield the numbers of one place of a table; none where it has no cell."""
    paper, at, is_slope = plan.study, tuple(place.items()), SLOPE in place.values()
    dataset, method = str(place["dataset"]), str(place["method"])
    setting = {name: value for name, value in place.items() if name not in ("dataset", "method")}
    if not paper.methods[method].has({name: value for name, value in at if value not in MADE_OF}):
        return
    if is_slope and (at, spec.metrics[0]) not in measured:
        return
    # of a dataset that is our addition nothing can be compared with print
    in_print = dataset == AVERAGE or paper.datasets[dataset].printed
    for metric in spec.metrics:
        ours = measured.get((at, metric)) or Measurement(
            paper.key, plan.scale.name, dataset, setting, method, metric,
            reason=f"not part of scale {plan.scale.name}",
        )  # fmt: skip
        published = printed.get((at, metric)) if in_print else None
        measure = paper.measure(metric)
        if is_slope:
            measure = measure.model_copy(update={"low": -math.inf, "decimals": 2})
        verdict = verdict_on(ours, published, plan.config.tolerance, bound=spec.kind == "rates")
        here = (at, metric) in measured and ours.scale == plan.scale.name
        yield Compared(place, metric, ours, published, verdict, here, measure)


def _measured(
    plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped
) -> dict[tuple[Place, str], Measurement]:
    """Return the numbers of a table of ours by place and metric, also those that are made of several cells."""
    if spec.kind == "rates":
        measured = _by_place(measurements(rates.table_of_rates(cells, spec, shipped), spec.metrics))
    else:
        runs = table_of_runs(cells, spec.metrics, shipped, Path(plan.config.data_dir))
        measured = _by_place(measurements(runs, spec.metrics))
        measured |= _from_elsewhere(shipped, plan, spec, measured)
        measured = combine.pool(measured, spec.pool) if spec.pool else measured
    grid = axes(plan, spec)
    if spec.average is not None:
        over = spec.datasets if spec.average == "dataset" else grid[spec.average][:-1]
        measured |= combine.averages(measured, spec.average, over)
    if spec.slope is not None:
        measured |= combine.slopes(measured, spec.slope, grid[spec.slope][:-1])
    return measured


def _by_place(measured: Iterable[Measurement]) -> dict[tuple[Place, str], Measurement]:
    return {(one.place, one.metric): one for one in measured}


def _from_elsewhere(
    shipped: Shipped, plan: Plan, spec: TableSpec, measured: Measured
) -> dict[tuple[Place, str], Measurement]:
    """Return shipped numbers for the places that the scale does not run.

    All of a place come from one scale, or methods could not be compared: from the one that has most of them, of equals
    from this one, then from the one nearest to the paper.
    """
    settings = plan.study.values(spec)
    datasets = dict.fromkeys([*spec.datasets, *(str(place[0][1]) for place, _ in measured)])
    places = itertools.product(datasets, *settings.values(), spec.methods)
    names = ("dataset", *settings, "method")
    lacking = [
        (str(data), dict(zip(settings, values, strict=True)), str(method))
        for data, *values, method in places
        if (tuple(zip(names, (data, *values, method), strict=True)), spec.metrics[0]) not in measured
    ]
    listed: dict[Place, dict[str, list[Measurement]]] = {}
    for name in dict.fromkeys((plan.scale.name, *shipped.scales)):
        cells = [cell for at in lacking if (cell := shipped.cell(name, *at)) is not None]
        runs = table_of_runs(cells, spec.metrics, shipped, trained=False)
        for one in measurements(runs, spec.metrics):
            if one.shipped:
                listed.setdefault(one.place[:-1], {}).setdefault(name, []).append(one)
    return _by_place(one for by_scale in listed.values() for one in max(by_scale.values(), key=len))


def unknown_names(paper: Paper, spec: TableSpec) -> list[str]:
    """List the names in a table's published file that nothing of the paper is called."""
    if not spec.published:
        return []
    metrics = {metric for table in paper.tables.values() for metric in table.metrics}
    return load(paper.key, spec.published, paper.measures).unknown_names(
        paper.methods, metrics, paper.values(spec)
    )


def verdict_on(ours: Measurement, found: Published | None, tolerance: float, bound: bool = False) -> Verdict:
    """Return the verdict on one measurement; without a full mean it is the measurement's status."""
    if ours.status != FINISHED:
        return Verdict(ours.status)
    if found is None or found.mean is None:
        return Verdict(NO_REFERENCE)
    if bound:
        return Verdict(BOUND)
    theirs = (math.nan if side is None else side for side in (found.comparable_std, found.n_seeds))
    judged = hold_against_print(ours.mean, ours.std, ours.n_seeds, found.mean, tolerance, *theirs)
    half = None if np.isnan(judged.half_width) else float(judged.half_width)
    return Verdict(str(judged.kind), float(judged.difference), half, str(judged.basis))


def resemblance(compared: Sequence[Compared], tolerance: float) -> tuple[int, int]:
    """Count how many of the numbers that match would match the print of another method, of how many comparisons.

    Where many do, the tolerance does not tell the methods apart, and matches say nothing of their order.
    """
    same = total = 0
    for group in method_groups(compared):
        for item, other in itertools.permutations(group, 2):
            if item.verdict.kind == MATCHES and other.published and math.isfinite(other.printed):
                total += 1
                same += verdict_on(item.measured, other.published, tolerance).kind == MATCHES
    return same, total


def method_groups(compared: Sequence[Compared]) -> list[list[Compared]]:
    """Group the numbers that methods compete in: same dataset, settings and metric."""
    groups: dict[tuple[Place, str], list[Compared]] = {}
    for item in compared:
        rest = tuple((axis, value) for axis, value in item.place.items() if axis != "method")
        groups.setdefault((rest, item.metric), []).append(item)
    return list(groups.values())


def agreement(group: Sequence[Compared], decimals: int) -> tuple[float | None, int]:
    """Kendall's tau between our order of the methods of one group and the published one, and of how many.

    Means that are equal to ``decimals``, as the table shows them, are a tie.
    """
    known = [item for item in group if math.isfinite(item.mean) and math.isfinite(item.printed)]
    both = [item for item in known if item.verdict.kind != BOUND]
    ours, printed = np.array([round(i.mean, decimals) for i in both]), np.array([i.printed for i in both])
    tau = rank_agreement(ours, printed)
    return None if math.isnan(tau) else tau, len(both)


def tidy(compared: Sequence[Compared], table_name: str) -> pd.DataFrame:
    """Return the machine-readable form of a table: one row per number, nothing rounded away."""
    rows = []
    for item in compared:
        ours, found, verdict = item.measured, item.published, item.verdict
        rows.append(
            {
                "paper": ours.paper,
                "table": table_name,
                **item.place,
                "metric": item.metric,
                **{name.removesuffix("_text"): getattr(ours, name) for name in OURS},
                "published_mean": found.text if found else "",
                "published_std": found.std_text if found else "",
                "published_note": found.note if found else "",
                "difference": verdict.difference,
                "half_width": verdict.half_width,
                "verdict": verdict.kind,
                "basis": verdict.basis,
                # seconds differ from run to run, and a table's bytes do not: they are in exports and on the page
                **{name: value for name, value in asdict(ours.cost).items() if name != "seconds"},
                **{name: getattr(ours, name) for name in MADE},
            }
        )
    return pd.DataFrame(rows)
