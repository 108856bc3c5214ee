"""The panels of a figure from results on disk: curves over seeds, final values, or one line per client."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from fedbench.report.figures.content import (
    COLUMNS,
    INTERVAL,
    Content,
    Panel,
    curve,
    joined_curves,
    label_of_x,
    means,
    spread,
)
from fedbench.report.figures.style import MEAN, OTHERS, TOP
from fedbench.results import collect
from fedbench.results.aggregate import measure_cells
from fedbench.results.frame import DIVERGED, FINISHED, NOT_RUN, Measured
from fedbench.results.names import axis_name, axis_text
from fedbench.results.places import Place, place_of
from fedbench.results.published import printed_results
from fedbench.results.shipped import Shipped, load_curves
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Value

BAND = "band from lowest to highest"
Printed = Mapping[tuple[Place, str, str], float]
"""Printed values by place, method and metric."""
Draws = Callable[[str, Sequence[Cell], str], pd.DataFrame | None]
"""Returns the points of a curve, given its label, its cells and a metric; None where there is no result."""


def curves(plan: Plan, name: str) -> Content:
    """Return curves over the course of training."""
    spec, printed = plan.figure(name), printed_results(plan.study)
    shipped = load_curves(plan, "curves")

    def draw(label: str, cells: Sequence[Cell], metric: str) -> pd.DataFrame | None:
        return learning_curve(label, cells[0], metric, spec.x, printed, shipped)

    panels = panels_of(plan, name, draw)
    return Content(*panels, label_of_x(spec), f"mean over {{}}, {BAND}", log=spec.log)


def finals(plan: Plan, name: str) -> Content:
    """Return final values against a setting; those that were not trained here are the shipped ones."""
    paper, spec, printed, shipped = plan.study, plan.figure(name), printed_results(plan.study), Shipped(plan)

    def draw(label: str, cells: Sequence[Cell], metric: str) -> pd.DataFrame | None:
        return final_of(label, spec.x, measure_cells(cells, [metric], shipped), printed)

    label, words = axis_name(paper, spec.x), paper.settings[spec.x].label
    label = label if label == words else f"{label} ({words})"
    ticks = tuple(sorted(map(float, paper.values(spec)[spec.x])))
    panels = panels_of(plan, name, draw, inside=[spec.x])
    return Content(*panels, label, INTERVAL, look="seeds", log=spec.log, ticks=ticks)


def duals(plan: Plan, name: str) -> Content:
    """Return a line per client of what the method traced in the first seed."""
    spec, shipped = plan.figure(name), load_curves(plan, "clients")

    def draw(_label: str, cells: Sequence[Cell], metric: str) -> pd.DataFrame | None:
        for cell in cells:
            (values, trained), (ranking, _) = (
                collect.clients(cell, quantity, shipped) for quantity in (metric, spec.metrics[0])
            )
            if values is not None and ranking is not None:
                return bundles_of(values, ranking, shipped=not trained)
        return None

    panels = panels_of(plan, name, draw, inside=["dataset", "method", *plan.study.settings])
    words = "one line per client, first seed"
    return Content(*panels, label_of_x(spec), words, words, look="clients", log=spec.log)


def panels_of(
    plan: Plan, name: str, draw: Draws, inside: Sequence[str] = ()
) -> tuple[list[Panel], int, list[str]]:
    """Return the panels of a figure, how many stand in a row, and titles of those that have no results.

    One axis of panels fills rows of three and leaves out what is empty. Two axes (or one and several metrics) are rows
    and columns; those are left out that are empty as a whole. Axes ``inside`` a panel are no labels of curves.
    """
    paper, spec = plan.study, plan.figure(name)
    axes: dict[str, Sequence[Value]] = {
        "metric": spec.metrics,
        "dataset": plan.datasets(spec),
        "method": spec.methods,
        **paper.values(spec),
    }
    order = spec.panel_axes
    if "metric" not in (*order, *inside):  # metrics are rows, unless they are named
        order = ["metric", *order]
    labels = [axis for axis in ("method", *axes) if len(axes[axis]) > 1 and axis not in (*order, *inside)]
    labels = [*dict.fromkeys(labels)]
    if not labels and "method" not in inside:
        labels = ["method"]
    panels = [
        _panel(plan, name, dict(zip(order, values, strict=True)), labels, draw)
        for values in itertools.product(*(axes[axis] for axis in order))
    ]
    empty, width = [panel.title for panel in panels if panel.points.empty], len(axes[order[-1]])
    if len(panels) == width:
        return [panel for panel in panels if len(panel.points)], COLUMNS, empty
    filled = np.array([len(panel.points) > 0 for panel in panels]).reshape(-1, width)
    rows, columns = filled.any(axis=1), filled.any(axis=0)
    return [*itertools.compress(panels, np.outer(rows, columns).flat)], columns.sum(), empty


def _panel(plan: Plan, name: str, place: dict[str, Value], labels: Sequence[str], draw: Draws) -> Panel:
    """Draw the cells of a place in one panel."""
    paper, spec = plan.study, plan.figure(name)
    metric = str(place.pop("metric", spec.metrics[0].partition("@")[0]))
    named: dict[str, list[Cell]] = {}
    for cell in plan.cells(name):
        at = {"dataset": cell.dataset, "method": cell.method, **cell.setting}
        if place.items() <= at.items():
            label = ", ".join(axis_text(paper, axis, at[axis]) for axis in labels)
            named.setdefault(label, []).append(cell)
    points = joined_curves(draw(label, cells, metric) for label, cells in named.items())
    measure = paper.measure(metric).label
    words = [axis_text(paper, axis, value) for axis, value in place.items()]
    if "metric" in spec.panel_axes:
        words.append(measure if words else measure.capitalize())
    title = ", ".join(words)
    if "dataset" in place and place["dataset"] not in spec.datasets:
        title += " (stand-in)"
    return Panel(title, metric, measure, points)


def learning_curve(
    label: str, cell: Cell, metric: str, x: str, printed: Printed, shipped: collect.Tables
) -> pd.DataFrame | None:
    """Return the learning curve of a cell over its seeds, trained here or shipped, None when no seed has one.

    Mean, lowest and highest are taken where every seed that ran has a value, so a diverged seed ends the
    curve. Where x differs between seeds (``seconds``) its mean is taken.
    """
    by_seed = collect.curves(cell, metric, x, shipped)
    if by_seed.empty:
        return None
    by_seed["at"] = by_seed.groupby("seed").cumcount() if x == "seconds" else by_seed["x"]
    wide = by_seed.groupby(["at", "seed"], dropna=False)["value"].mean().unstack().dropna()
    if wide.empty:
        return None
    seeds = by_seed["seed"].nunique()
    bad = by_seed.loc[by_seed["status"] == DIVERGED, "seed"].nunique()
    remark = f"{seeds} of {len(cell.runs)} seeds" if seeds < len(cell.runs) else ""
    remark = f"diverged in {bad} of {len(cell.runs)} seeds" if bad else remark
    points = spread(wide)
    if x == "seconds":
        points["x"] = by_seed.groupby("at")["x"].mean().reindex(points["x"]).to_numpy()
    in_print = printed.get((place_of(cell.dataset, cell.setting), cell.method, metric), math.nan)
    known = {"published": in_print, "remark": remark, "broken": bad > 0, "shipped": not by_seed["here"].all()}
    return curve(label, points, seeds=seeds, **known)


def final_of(label: str, x: str, numbers: Sequence[Measured], printed: Printed) -> pd.DataFrame | None:
    """Return measurements of one metric against a setting, None where none has a value.

    A cell without a full mean has no point; what became of it stands in the remark, unless it is only not run yet.
    """
    places = [float(dict(of.place)[x]) for of in numbers]
    in_print = [printed.get((of.place, of.method, of.metric), math.nan) for of in numbers]
    lacking = [
        f"{of.status} at {at:g}"
        for at, of in zip(places, numbers, strict=True)
        if of.status not in (FINISHED, NOT_RUN)
    ]
    points = means(label, numbers, ", ".join(lacking), x=places, published=in_print)
    return None if points is None else points.sort_values("x", ignore_index=True)


def bundles_of(values: pd.DataFrame, ranking: pd.DataFrame, shipped: bool) -> pd.DataFrame:
    """Return what a method traced for every client: the lines of a tenth, those of the others, and their mean.

    The tenth has the largest last values of ``ranking``: it is the same clients in every panel.

    Args:
        values: a row for each round, a column for each client.
        ranking: likewise, of the quantity that ranks.
        shipped: whether the run came with the repository.
    """
    last = ranking.iloc[-1].sort_values(ascending=False, kind="stable")
    top = list(last.index[: math.ceil(len(last) / 10)]) if last.iloc[0] > last.iloc[-1] else []
    rest = [name for name in values.columns if name not in top]
    groups = {OTHERS: values[rest], TOP: values[top], MEAN: values.mean(axis=1).to_frame()}
    return pd.concat(
        curve(label, spread(lines), values=lines.to_numpy().tolist(), shipped=shipped)
        for label, lines in groups.items()
        if lines.shape[1]
    )
