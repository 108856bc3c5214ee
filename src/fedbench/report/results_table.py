"""A table of results or of exponents: each number of ours beside its printed value."""

from __future__ import annotations

import math

import pandas as pd

from fedbench.report import described, legend, notes, verdict_words
from fedbench.report.document import Table, origin, stamp
from fedbench.report.layout import METRIC, Axes, Block, Entry, Grid, arranged
from fedbench.results import compare, verdicts
from fedbench.results.collect import provenance
from fedbench.results.frame import (
    DIVERGED,
    FAILED,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    NOT_RUN,
    UNDEFINED,
    Compared,
    Measured,
    records,
)
from fedbench.results.names import ABSENT, MADE_OF, SHIPPED, axis_name, axis_text, signed
from fedbench.results.places import axes_placed
from fedbench.results.run_facts import NO_MODEL
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, TableSpec


def table_of_results(plan: Plan, name: str) -> Table:
    """Assemble the table from what is on disk."""
    spec, cells, axes = plan.table(name), plan.cells(name), axes_placed(plan, name)
    frame = compare.comparisons(plan, spec, cells)
    frame = frame.assign(on_edge=[on_edge(plan, item) for item in records(frame, Compared)])
    grid = layout(plan.study, spec, axes, frame)
    made = provenance(cells)
    mark = stamp(made["commits"], [run["key"] for cell in made["cells"] for run in cell["runs"]])
    if frame["shipped"].any():
        mark += f"; of {SHIPPED}: column commit of the CSV"
    made_of = (
        legend.published(frame),
        legend.combined(plan.study, spec),
        described.selection(plan.study, cells),
    )
    return Table(
        paper=plan.study.key,
        name=name,
        title=notes.caption(plan, name, cells, frame),
        grid=grid,
        notes=notes.below(plan, name, cells, frame, made),
        details=[
            *filter(None, made_of),
            *described.trained(cells),
            *described.chosen(plan, cells),
            f"{mark}.",
        ],
        rows=compare.tidy(frame, plan.study.key, name),
        provenance=origin(
            plan, name, mark, tolerance=plan.config.tolerance, published=spec.published, **made
        ),
    )


def on_edge(plan: Plan, item: Compared) -> bool:
    """Say whether a number with a verdict was made with a tuned value that is the least or largest tried."""
    if math.isnan(item.difference) or any(value in MADE_OF for value in item.at.values()):
        return False
    at = plan.at(plan.config.model_copy(update={"scale": item.scale}))
    # a pooled number has no place among what is pooled
    defaults = {name: entry.default for name, entry in plan.study.settings.items()}
    settings = defaults | {name: value for name, value in item.place if name != "dataset"}
    return bool(at.tuned(at.cell(item.dataset, settings, item.method)).edges)


def layout(paper: Paper, spec: TableSpec, axes: Axes, frame: pd.DataFrame) -> Grid:
    """Arrange the compared numbers as the ``rows`` and ``columns`` of the table say.

    ``frame`` is that of :func:`~fedbench.results.compare.comparisons`.
    """
    second = set() if METRIC in (*spec.rows, *spec.columns) else {*spec.metrics[1:]}
    frame = frame.assign(
        best=verdicts.best(frame, frame["mean"]),
        printed_best=verdicts.best(frame, frame["printed"]),
        second=frame["metric"].isin(second),
    )
    said = [({**item.at, METRIC: item.metric}, _entry(item)) for item in records(frame, Compared)]
    columns, blocks = arranged(
        spec, {**axes, METRIC: spec.metrics}, said, lambda *pair: axis_text(paper, *pair)
    )
    blocks = [Block(block.heading and block.heading + _away(block), block.rows) for block in blocks]
    ran = {*frame.loc[frame["status"] != NOT_RUN, "dataset"]}
    lacking = [axis_text(paper, "dataset", name) for name in axes["dataset"] if name not in ran]
    compares = bool(frame["has_print"].any())
    return Grid(axis_name(paper, spec.rows[-1]), columns, blocks, compares, lacking=lacking)


def _away(block: Block) -> str:
    """Name the scales of a block that has numbers of other scales alone."""
    known = [entry.item for row in block.rows for line in row.entries for entry in line if entry.item]
    scales = sorted({item.scale for item in known if item.shipped})
    if not scales or any(item.of_scale for item in known):
        return ""
    return f" ({SHIPPED} scale {', '.join(scales)})"


def _entry(item: Compared) -> Entry:
    """Return what stands in one place."""
    value, spread = gain_text(item) if item.gain else state_text(item, item.digits)
    return Entry(
        value=value,
        spread=spread,
        best=item.best,
        printed=item.printed_text or (ABSENT if item.has_print else ""),
        printed_spread="" if math.isnan(item.comparable_std) else f"±{item.printed_std_text}",
        printed_best=item.printed_best,
        doubtful=bool(item.doubt),
        delta="" if math.isnan(item.difference) else signed(item.difference, item.digits),
        symbol=verdict_words.symbol(item.verdict, item.basis) + (verdict_words.EDGE if item.on_edge else ""),
        second=item.second,
        item=item,
    )


def state_text(ours: Measured, decimals: int) -> tuple[str, str]:
    """Return our side of a number and its spread; one without a full mean says why in a word."""
    status = ours.status
    mark = SHIPPED if ours.shipped else ""
    if status in (FINISHED, INCOMPLETE):
        spread = "" if math.isnan(ours.std) else f"±{ours.std:.{decimals}f}"
        partial = f" ({ours.n_seeds}/{ours.n_wanted})" if status == INCOMPLETE else ""
        idle = "".join(f" ({len(runs)}/{ours.n_seeds} {word})" for word, runs in ours.idle.items())
        return f"{ours.mean:.{decimals}f}{mark}", spread + partial + idle
    if status in (DIVERGED, FAILED):
        count = f" {ours.n_bad}/{ours.n_wanted}" if ours.n_bad and ours.n_wanted > 1 else ""
        return f"{status}{count}{mark}", ""
    reached = [f"{value:.{decimals}f}" for value in ours.values.values() if math.isfinite(value)]
    if status == NOT_REACHED and (missed := len(ours.values) - len(reached)):  # a slope misses nothing itself
        count = f" {missed}/{len(ours.values)}" if len(ours.values) > 1 else ""
        return f"{status}{count}{mark}", f" ({', '.join(reached)})" if reached else ""
    if ours.reason == NO_MODEL:
        return f"{ours.reason}{mark}", ""
    return (status if status == UNDEFINED else ABSENT), ""


def gain_text(gain: Compared) -> tuple[str, str]:
    """Return a gain of federated training with its sign, and its spread with the interval in brackets."""
    value, spread = state_text(gain, gain.digits)
    if math.isnan(gain.mean):
        return value, spread
    value = value.replace(f"{gain.mean:.{gain.digits}f}", signed(gain.mean, gain.digits))
    ends = (signed(end, gain.digits) for end in (gain.low, gain.high))
    return value, spread + ("" if math.isnan(gain.low) else f" [{', '.join(ends)}]")
