"""The panels of a figure from results on disk: curves over seeds, final values, or one line per client."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from fedbench.report.figures.parts import (
    COLUMNS,
    INTERVAL,
    Across,
    Content,
    Curve,
    Panel,
    across_of,
    interval,
    mean_over,
    repeats_of,
    spread,
)  # fmt: skip
from fedbench.report.figures.style import BLACK, GREY, RED, Style, styles_of
from fedbench.results import collect
from fedbench.results.aggregate import measure_cells
from fedbench.results.frame import DIVERGED, FINISHED, NOT_RUN, Measured
from fedbench.results.names import axis_name, axis_text
from fedbench.results.places import Place, place_of
from fedbench.results.published import printed_results
from fedbench.results.shipped import Shipped, load_curves
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import FigureSpec, Paper, Value

OTHERS, TOP, MEAN = "other clients", "the tenth that ends highest", "mean of all clients"
BUNDLES = {
    OTHERS: Style(GREY, "-", "", 0.4),
    TOP: Style(RED, "-", "", 0.8),
    MEAN: Style(BLACK, (0, (4, 2)), "", 1.6),
}
Printed = Mapping[tuple[Place, str, str], float]
"""Printed values by place, method and metric."""
Drawn = Iterable[Curve | None]
"""What is drawn in a panel; no curve where there is no result."""
Draws = Callable[[Mapping[str, list[Cell]], str], Drawn]
"""Draws the cells of a panel, by their labels, in a metric."""


def curves(plan: Plan, name: str) -> Content:
    """Return curves over the course of training."""
    spec, printed = plan.figure(name), printed_results(plan.study)
    shipped = load_curves(plan, "curves")

    def draw(named: Mapping[str, list[Cell]], metric: str) -> Drawn:
        cells = ((label, cell) for label, some in named.items() for cell in some)
        return (curve_of(label, cell, metric, spec.x, printed, shipped) for label, cell in cells)

    content = content_of(plan, name, draw, across_of(spec), mean_over("band from lowest to highest"))
    return replace(content, what="curve")


def finals(plan: Plan, name: str) -> Content:
    """Return final values against a setting; those that were not trained here are the shipped ones."""
    paper, spec, printed, shipped = plan.study, plan.figure(name), printed_results(plan.study), Shipped(plan)

    def draw(named: Mapping[str, list[Cell]], metric: str) -> Iterator[Curve | None]:
        for label, cells in named.items():
            yield final_of(label, spec.x, measure_cells(cells, [metric], shipped), printed)

    label, words = axis_name(paper, spec.x), paper.settings[spec.x].label
    ticks = tuple(sorted(map(float, paper.values(spec)[spec.x])))
    across = replace(across_of(spec), label=label if label == words else f"{label} ({words})", ticks=ticks)
    return content_of(plan, name, draw, across, mean_over(INTERVAL), inside=[spec.x])


def duals(plan: Plan, name: str) -> Content:
    """Return a line per client of what the method traced in the first seed."""
    spec, shipped = plan.figure(name), load_curves(plan, "clients")

    def draw(named: Mapping[str, list[Cell]], metric: str) -> Drawn:
        return bundles_of(
            [cell for some in named.values() for cell in some], metric, spec.metrics[0], shipped
        )

    content = content_of(plan, name, draw, across_of(spec), lambda _: "one line per client, first seed")
    drawn = {curve.label for panel in content.panels for curve in panel.curves}
    styles = {label: style for label, style in BUNDLES.items() if label in drawn}
    return replace(content, styles=styles, what="curve")


def content_of(
    plan: Plan, name: str, draw: Draws, across: Across, runs: Callable[[str], str], inside: Sequence[str] = ()
) -> Content:
    """Collect the panels of a figure, without those that have no results.

    One axis of panels fills rows of three and leaves out what is empty. Two axes (or one and several metrics) are rows
    and columns; those are left out that are empty as a whole. Axes ``inside`` a panel are no labels.
    """
    paper, spec = plan.study, plan.figure(name)
    datasets = plan.datasets(spec)
    axes: dict[str, Sequence[Value]] = {
        "metric": spec.metrics,
        "dataset": datasets,
        "method": spec.methods,
        **paper.values(spec),
    }
    # metrics are rows, unless they are named
    order = spec.panel_axes if "metric" in spec.panel_axes else ["metric", *spec.panel_axes]
    labels = [axis for axis in ("method", *axes) if len(axes[axis]) > 1 and axis not in (*order, *inside)]
    labels = [*dict.fromkeys(labels)] or ["method"]
    panels = [
        _panel(paper, spec, plan.cells(name), dict(zip(order, values, strict=True)), labels, draw)
        for values in itertools.product(*(axes[axis] for axis in order))
    ]
    empty, width = [panel.title for panel in panels if panel.empty], len(axes[order[-1]])
    shown, columns = [panel for panel in panels if not panel.empty], COLUMNS
    if len(panels) != width:
        rows = [panels[at : at + width] for at in range(0, len(panels), width)]
        rows = [row for row in rows if not all(panel.empty for panel in row)]
        kept = [i for i in range(width) if not all(row[i].empty for row in rows)]
        shown, columns = [row[i] for row in rows for i in kept], len(kept)
    styles = styles_of((curve.label for panel in shown for curve in panel.curves), paper)
    return Content(shown, across, styles, datasets, runs, columns, empty)


def _panel(
    paper: Paper,
    spec: FigureSpec,
    cells: Sequence[Cell],
    place: dict[str, Value],
    labels: list[str],
    draw: Draws,
) -> Panel:
    """Draw the cells of a place in one panel."""
    metric = str(place.pop("metric"))
    named: dict[str, list[Cell]] = {}
    for cell in cells:
        at = {"dataset": cell.dataset, "method": cell.method, **cell.setting}
        if place.items() <= at.items():
            label = ", ".join(axis_text(paper, axis, at[axis]) for axis in labels)
            named.setdefault(label, []).append(cell)
    drawn = [*filter(None, draw(named, metric))]
    measure = paper.measure(metric)
    return Panel(
        _title(paper, spec, place, metric),
        metric,
        measure.label,
        drawn,
    )


def _title(paper: Paper, spec: FigureSpec, place: Mapping[str, Value], metric: str) -> str:
    words = [axis_text(paper, name, value) for name, value in place.items()]
    if "metric" in spec.panel_axes:
        label = paper.measure(metric).label
        words.append(label if words else label.capitalize())
    stands_in = "dataset" in place and place["dataset"] not in spec.datasets
    return ", ".join(words) + " (stand-in)" * stands_in


def curve_of(
    label: str, cell: Cell, metric: str, x: str, printed: Printed, shipped: collect.Tables
) -> Curve | None:
    """Return a cell's curve over its seeds, trained here or shipped, None when no seed has one.

    Mean, lowest and highest are taken where every seed that ran has a value, so a diverged seed ends the
    curve. Where x differs between seeds (``seconds``) its mean is taken.
    """
    by_seed = collect.curves(cell, metric, x, shipped)
    if by_seed.empty:
        return None
    by_seed["at"] = by_seed.groupby("seed").cumcount() if x == "seconds" else by_seed["x"]
    wide = by_seed.pivot_table(index="at", columns="seed", values="value", dropna=False).dropna()
    if wide.empty:
        return None
    seeds = by_seed["seed"].nunique()
    bad = by_seed.loc[by_seed["status"] == DIVERGED, "seed"].nunique()
    remark = f"{seeds} of {len(cell.runs)} seeds" if seeds < len(cell.runs) else ""
    remark = f"diverged in {bad} of {len(cell.runs)} seeds" if bad else remark
    points = spread(wide)
    if x == "seconds":
        points["x"] = by_seed.groupby("at")["x"].mean().reindex(points["x"]).to_numpy()
    place = place_of(cell.dataset, cell.setting)
    points["published"] = printed.get((place, cell.method, metric), math.nan)
    return Curve(label, points, remark, broken=bool(bad), shipped=not by_seed["here"].all(), seeds=seeds)


def final_of(label: str, x: str, numbers: Sequence[Measured], printed: Printed) -> Curve | None:
    """Return measurements of one metric against a setting, None where none has a value.

    A cell without a full mean has no point; what became of it stands in the remark, unless it is only not run yet.
    """
    rows, repeats, remarks = [], list[pd.DataFrame](), list[str]()
    for measured in numbers:
        at = float(dict(measured.place)[x])
        if measured.status not in (FINISHED, NOT_RUN):
            remarks.append(f"{measured.status} at {at:g}")
        if math.isfinite(measured.mean):
            in_print = printed.get((measured.place, measured.method, measured.metric), math.nan)
            rows.append({"x": at, **interval(measured), "published": in_print})
            repeats.append(repeats_of(at, measured))
    if not rows:
        return None
    points = pd.DataFrame(rows).sort_values("x", ignore_index=True)
    shipped = any(measured.shipped for measured in numbers)
    return Curve(label, points, ", ".join(remarks), repeats=pd.concat(repeats), shipped=shipped)


def bundles_of(cells: Sequence[Cell], quantity: str, leading: str, shipped: collect.Tables) -> list[Curve]:
    """Return what a method traced for every client in the first seed: one line per client, and their mean.

    The tenth of the clients with the largest last value of ``leading`` is a bundle of its own, the same
    clients in every panel.
    """
    for cell in cells:
        (values, trained), (ranking, _) = (
            collect.clients(cell, name, shipped) for name in (quantity, leading)
        )
        if values is None or ranking is None:
            continue
        last = ranking.iloc[-1].sort_values(ascending=False, kind="stable")
        top = list(last.index[: math.ceil(len(last) / 10)]) if last.iloc[0] > last.iloc[-1] else []
        rest = [name for name in values.columns if name not in top]
        groups = ((OTHERS, values[rest]), (TOP, values[top]), (MEAN, values.mean(axis=1).to_frame()))
        return [
            Curve(label, spread(lines), shipped=not trained, lines=lines)
            for label, lines in groups
            if lines.shape[1]
        ]
    return []
