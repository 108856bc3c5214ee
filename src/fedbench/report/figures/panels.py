"""The panels of a figure from results on disk: curves over seeds, final values, or one line per client."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedbench.plan.cells import Cell
from fedbench.plan.schema import FigureSpec, Paper, Value
from fedbench.report.figures import forest
from fedbench.report.figures.parts import Bundle, Curve, Panel
from fedbench.report.figures.style import BLACK, GREY, RED, Style
from fedbench.report.numbers import collect
from fedbench.report.numbers.aggregate import measure_cells
from fedbench.report.numbers.measurement import Measurement
from fedbench.report.numbers.names import axis_text
from fedbench.report.numbers.prints import printed_results
from fedbench.report.numbers.rows import DIVERGED, FINISHED, NOT_RUN
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.places import Place, place_of
from fedbench.results.statistics import half_width

OTHERS, TOP, MEAN = "other clients", "the tenth that ends highest", "mean of all clients"
BUNDLES = {
    OTHERS: Style(GREY, "-", "", 0.4),
    TOP: Style(RED, "-", "", 0.8),
    MEAN: Style(BLACK, (0, (4, 2)), "", 1.6),
}
Printed = Mapping[tuple[Place, str, str], float]
"""Printed values by place, method and metric."""
COLUMNS = 3
"""Panels in a row of a figure whose panels are one axis."""


@dataclass(frozen=True)
class Layout:
    """The panels that have something to show, in rows of ``columns``, and the titles of those that have nothing."""

    panels: list[Panel]
    columns: int
    empty: list[str]

    @property
    def shipped(self) -> bool:
        """Whether some of it was not trained here but came with the repository."""
        return any(curve.shipped for panel in self.panels for curve in panel.curves)

    @property
    def seeds(self) -> list[int]:
        """Over how many seeds what is drawn are means, ascending, each number once."""
        return sorted({curve.averaged for panel in self.panels for curve in panel.curves} - {0})


def layout(
    paper: Paper,
    spec: FigureSpec,
    cells: Sequence[Cell],
    datasets: Sequence[str],
    shipped: Shipped,
) -> Layout:
    """Collect the panels of a figure; final values that were not trained here come from ``shipped``, curves do not.

    One axis of panels fills rows of three and leaves out what is empty. Two axes (or one and several metrics) are rows
    and columns; those are left out that are empty as a whole.
    """
    axes = axes_of(paper, spec, datasets)
    order = _panel_axes(spec)
    panels = panels_of(paper, spec, cells, datasets, shipped)
    empty = [panel.title for panel in panels if panel.empty]
    width = len(axes[order[-1]])
    if len(panels) == width:
        return Layout([panel for panel in panels if not panel.empty], COLUMNS, empty)
    rows = [panels[at : at + width] for at in range(0, len(panels), width)]
    rows = [row for row in rows if not all(panel.empty for panel in row)]
    kept = [i for i in range(width) if not all(row[i].empty for row in rows)]
    return Layout([row[i] for row in rows for i in kept], len(kept), empty)


def axes_of(paper: Paper, spec: FigureSpec, datasets: Sequence[str]) -> dict[str, list[Value]]:
    """Return the values of each axis of a figure."""
    return {
        "metric": [*spec.metrics],
        "dataset": [*datasets],
        "method": [*spec.methods],
        **paper.values(spec),
    }


def _panel_axes(spec: FigureSpec) -> list[str]:
    """Return what the panels vary in; metrics are rows, unless they are named."""
    return spec.panel_axes if "metric" in spec.panel_axes else ["metric", *spec.panel_axes]


def panels_of(
    paper: Paper,
    spec: FigureSpec,
    cells: Sequence[Cell],
    datasets: Sequence[str],
    shipped: Shipped,
) -> list[Panel]:
    """Collect the panels of a figure, row after row; one without results shows nothing."""
    axes, order, printed = axes_of(paper, spec, datasets), _panel_axes(spec), printed_results(paper)
    inside = [*order, *([spec.x] if spec.kind == "final" else [])]
    labels = [name for name in ("method", *axes) if len(axes[name]) > 1 and name not in inside]
    labels = list(dict.fromkeys(labels)) or ["method"]
    panels = []
    for values in itertools.product(*(axes[name] for name in order)):
        place = dict(zip(order, values, strict=True))
        metric = str(place.pop("metric"))
        there = [cell for cell in cells if place.items() <= _coordinates(cell).items()]
        named: dict[str, list[Cell]] = {}
        for cell in there:
            label = ", ".join(axis_text(paper, name, _coordinates(cell)[name]) for name in labels)
            named.setdefault(label, []).append(cell)
        measure = paper.measure(metric)
        curves, bundles = list[Curve | None](), list[Bundle]()
        if spec.kind == "duals":
            bundles = bundles_of(there, metric, spec.metrics[0])
        elif spec.kind == "final":
            ended = {label: _ended(some, metric, shipped) for label, some in named.items()}
            curves = [final_of(label, spec.x, some, printed) for label, some in ended.items()]
        else:
            curves = [
                curve_of(label, cell, metric, spec.x, printed)
                for label, some in named.items()
                for cell in some
            ]
        title = _title(paper, spec, place, metric)
        found = [curve for curve in curves if curve is not None]
        falls = measure.better == "lower"
        panels.append(Panel(title, metric, measure.label, found, bundles, falls, measure.high))
    return panels


def _coordinates(cell: Cell) -> dict[str, Value]:
    return {"dataset": cell.dataset, "method": cell.method, **cell.setting}


def _title(paper: Paper, spec: FigureSpec, place: Mapping[str, Value], metric: str) -> str:
    words = [axis_text(paper, name, value) for name, value in place.items()]
    if "metric" in spec.panel_axes:
        label = paper.measure(metric).label
        words.append(label if words else label.capitalize())
    stands_in = "dataset" in place and place["dataset"] not in spec.datasets
    return ", ".join(words) + " (stand-in)" * stands_in


def curve_of(label: str, cell: Cell, metric: str, x: str, printed: Printed) -> Curve | None:
    """Return a cell's curve over its seeds, None when no seed has one.

    Mean, lowest and highest are taken where every seed that ran has a value, so a diverged seed ends the
    curve. Where x differs between seeds (``seconds``) its mean is taken.
    """
    found = collect.curves([cell], metric, x=x)
    found["at"] = found.groupby("seed").cumcount() if x == "seconds" else found["x"]
    wide = found.pivot_table(index="at", columns="seed", values="value", dropna=False).dropna()
    if found.empty or wide.empty:
        return None
    seeds = found["seed"].nunique()
    bad = found.loc[found["status"] == DIVERGED, "seed"].nunique()
    remark = f"{seeds} of {len(cell.runs)} seeds" if seeds < len(cell.runs) else ""
    remark = f"diverged in {bad} of {len(cell.runs)} seeds" if bad else remark
    points = spread(wide)
    if x == "seconds":
        points["x"] = found.groupby("at")["x"].mean().reindex(points["x"]).to_numpy()
    points["published"] = _printed(printed, cell, metric)
    return Curve(label, points, remark, broken=bool(bad), seeds=seeds)


def _printed(printed: Printed, cell: Cell, metric: str) -> float:
    """Return the printed value of a cell, NaN where no table has it."""
    return printed.get((place_of(cell.dataset, cell.setting), cell.method, metric), math.nan)


def _ended(cells: Sequence[Cell], metric: str, shipped: Shipped) -> list[tuple[Cell, Measurement]]:
    """Return the final values of cells: trained here, else shipped."""
    return [*zip(cells, measure_cells(cells, [metric], shipped), strict=True)]


def final_of(label: str, x: str, ended: Sequence[tuple[Cell, Measurement]], printed: Printed) -> Curve | None:
    """Return final values of cells against a setting, None where no cell has one.

    ``low`` and ``high`` are the ends of the t-interval over seeds, the mean itself for one seed. A cell without a full
    mean has no point; what became of it stands in the remark, unless it is only not run yet.
    """
    rows, repeats, remarks = [], [], list[str]()
    for cell, one in ended:
        at = float(cell.setting[x])
        if one.status not in (FINISHED, NOT_RUN):
            remarks.append(f"{one.status} at {at:g}")
        if math.isfinite(one.mean):
            half = float(np.nan_to_num(half_width(one.std, one.n_seeds)))
            ends = {"low": one.mean - half, "high": one.mean + half}
            rows.append({"x": at, "mean": one.mean, **ends, "published": _printed(printed, cell, one.metric)})
            repeats += [{"x": at, "value": value} for value in one.values.values()]
    if not rows:
        return None
    points = pd.DataFrame(rows).sort_values("x", ignore_index=True)
    shipped = any(one.shipped for _, one in ended)
    return Curve(label, points, ", ".join(remarks), repeats=pd.DataFrame(repeats), shipped=shipped)


def bundles_of(cells: Sequence[Cell], quantity: str, leading: str) -> list[Bundle]:
    """Return what a method traced for every client in the first seed: one line per client, and their mean.

    The tenth of the clients with the largest last value of ``leading`` is a bundle of its own, the same
    clients in every panel.
    """
    for cell in cells:
        values, ranking = (collect.clients(cell, name) for name in (quantity, leading))
        if values is None or ranking is None:
            continue
        last = ranking.iloc[-1].sort_values(ascending=False, kind="stable")
        top = list(last.index[: math.ceil(len(last) / 10)]) if last.iloc[0] > last.iloc[-1] else []
        rest = [name for name in values.columns if name not in top]
        groups = ((OTHERS, values[rest]), (TOP, values[top]), (MEAN, values.mean(axis=1).to_frame()))
        return [Bundle(label, lines) for label, lines in groups if lines.shape[1]]
    return []


def points(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return every point drawn, tidy: panel, metric, curve, x, mean, low, high, the published final value.

    Of a bundle mean, low and high are over its lines.
    """
    parts = []
    for panel in panels:
        drawn = {curve.label: curve.points for curve in panel.curves}
        drawn |= {bundle.label: spread(bundle.lines) for bundle in panel.bundles}
        for label, data in drawn.items():
            metric = data.get("metric", panel.metric)  # rows of a forest plot have their own
            parts.append(data.assign(panel=panel.title, metric=metric, curve=label))
    columns = ["panel", "metric", "curve", "x", "mean", "low", "high", "published"]
    columns += [name for name in forest.COLUMNS if any(name in part for part in parts)]
    return (
        pd.concat(parts, ignore_index=True).reindex(columns=columns)
        if parts
        else pd.DataFrame(columns=columns)
    )


def spread(wide: pd.DataFrame) -> pd.DataFrame:
    """Reduce one column per seed or client to x, mean, low, high."""
    found = pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})
    return found.rename_axis("x").reset_index()
