"""A table of results or of exponents: each number of ours beside its printed value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers import compare, rule
from fedbench.report.numbers.axes import axes_placed
from fedbench.report.numbers.compare import Compared, agreement, method_groups
from fedbench.report.numbers.names import ABSENT, AGAIN, SHIPPED, SLOPE, axis_name, axis_text, signed
from fedbench.report.numbers.origin import provenance
from fedbench.report.numbers.rows import DIVERGED, FAILED, FINISHED, INCOMPLETE, NOT_REACHED, UNDEFINED
from fedbench.report.tables import notes
from fedbench.report.tables.document import Table, origin, stamp
from fedbench.report.tables.fold import empty, fold
from fedbench.report.tables.layout import METRIC, Axes, Entry, Grid, arranged

DECIMALS = 3
"""Digits of a table whose paper prints none."""


def make(plan: Plan, name: str) -> Table:
    """Assemble the table from what is on disk."""
    spec, cells, axes = plan.table(name), plan.cells(name), axes_placed(plan, name)
    compared, published = compare.compare(plan, spec, cells)
    decimals = published.decimals if published else DECIMALS
    if spec.kind == "rates":  # bounds are printed as whole numbers
        decimals = max(plan.study.measure(metric).decimals for metric in spec.metrics)
    grid = layout(plan.study, spec, axes, compared, decimals)
    made = provenance(cells)
    mark = stamp(made["commits"], [run["key"] for cell in made["cells"] for run in cell["runs"]])
    dashes = any(empty(entry) and entry.value for entry in fold(grid).entries)
    return Table(
        paper=plan.study.key,
        name=name,
        title=notes.caption(plan, name, compared),
        grid=grid,
        notes=notes.below(plan, name, compared, made, dashes),
        details=[*notes.details(plan, name, compared, decimals), f"{mark}."],
        rows=compare.tidy(compared, name),
        provenance=origin(
            plan, name, mark, tolerance=plan.config.tolerance, published=spec.published, **made
        ),
    )


def layout(paper: Paper, spec: TableSpec, axes: Axes, compared: Sequence[Compared], decimals: int) -> Grid:
    """Arrange the compared numbers as the ``rows`` and ``columns`` of the table say."""
    printed = {item.metric for item in compared if item.published}
    second = set() if METRIC in (*spec.rows, *spec.columns) else {*spec.metrics[1:]}

    def digits(item: Compared) -> int:
        """Return how many decimals the table shows: as many as print, else those of the metric."""
        return decimals if item.metric in printed else item.measure.decimals

    best, printed_best = (_best(compared, digits, side) for side in ("mean", "printed"))
    taus = {
        id(item): tau
        for group in method_groups(compared)
        for tau in [_tau(group, digits(group[0]))]
        for item in group
    }
    said = []
    for item in compared:
        entry = _entry(item, digits(item))
        entry = replace(entry, best=id(item) in best, printed_best=id(item) in printed_best)
        entry = replace(entry, second=item.metric in second)
        said.append(({**item.place, METRIC: item.metric}, entry, taus[id(item)]))
    cells = arranged(spec, {**axes, METRIC: spec.metrics}, said, lambda *pair: axis_text(paper, *pair))
    away = {block: _away(part["entry"]) for block, part in cells.groupby("block")}
    cells["heading"] += cells["block"].map(away).where(cells["heading"] != "", "")
    tau = "row" if spec.columns == ["method"] else "column" if spec.rows[-1] == "method" else ""
    return Grid(axis_name(paper, spec.rows[-1]), cells, any(item.published for item in compared), tau)


def _away(entries: Iterable[Entry]) -> str:
    """Name the scales of a block that has numbers of other scales alone."""
    items = [entry.item for entry in entries if entry.item]
    scales = sorted({item.measured.scale for item in items if item.measured.shipped})
    return (
        f" ({SHIPPED} scale {', '.join(scales)})" if scales and not any(item.here for item in items) else ""
    )


def _entry(item: Compared, digits: int) -> Entry:
    """Return what stands in one place."""
    print_, difference = item.published, item.verdict.difference
    value, spread = state_text(item, digits)
    return Entry(
        value=value,
        spread=spread,
        printed=(print_.text or ABSENT) if print_ else "",
        printed_spread=f"±{print_.std_text}" if print_ and print_.comparable_std is not None else "",
        doubtful=bool(print_ and print_.doubt),
        delta="" if difference is None else signed(difference, digits),
        symbol=rule.symbol(item.verdict),
        item=item,
    )


def _best(compared: Sequence[Compared], digits: Callable[[Compared], int], side: str) -> set[int]:
    """Find the best of each group, ours or printed: equal digits are a tie; where all tie there is no best."""
    best: set[int] = set()
    for group in method_groups([item for item in compared if SLOPE not in item.place.values()]):
        sign = group[0].measure.sign
        values = {id(i): sign * round(v, digits(i)) for i in group if math.isfinite(v := getattr(i, side))}
        if len({*values.values()}) > 1:
            best |= {key for key, value in values.items() if value == max(values.values())}
    return best


def state_text(item: Compared, decimals: int) -> tuple[str, str]:
    """Return our side of an entry and its spread; a cell without a full mean says why in a word."""
    ours, status = item.measured, item.measured.status
    mark = SHIPPED * ours.shipped + AGAIN * ours.again
    if status in (FINISHED, INCOMPLETE):
        spread = "" if math.isnan(ours.std) else f"±{ours.std:.{decimals}f}"
        partial = f" ({ours.n_seeds}/{ours.n_wanted})" if status == INCOMPLETE else ""
        idle = "".join(f" ({len(runs)}/{ours.n_seeds} {word})" for word, runs in ours.idle.items())
        return f"{ours.mean:.{decimals}f}{mark}", spread + partial + idle
    if status in (DIVERGED, FAILED):
        count = f" {ours.n_bad}/{ours.n_wanted}" if ours.n_bad and ours.n_wanted > 1 else ""
        return f"{status}{count}{mark}", ""
    return (status if status in (UNDEFINED, NOT_REACHED) else ABSENT), ""


def _tau(group: Sequence[Compared], decimals: int) -> str:
    """Print Kendall's tau of a group; over a part of its methods it says so."""
    tau, methods = agreement(group, decimals)
    if tau is None:
        return ""
    part = f" ({methods}/{len(group)})" if methods < len(group) else ""
    return f"{tau:.2f}{part}".replace("-", "−")
