"""The panels of a figure from results on disk: curves over seeds, or one line per client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedbench.cells import Cell
from fedbench.errors import UserError, unknown
from fedbench.report import collect
from fedbench.report.names import axis_text, metric_label
from fedbench.report.plot import Bundle, Curve, Panel
from fedbench.report.style import BLACK, GREY, RED, Style
from fedbench.schema import FigureSpec, Paper, Value

OTHERS, TOP, MEAN = "other clients", "the tenth that ends highest", "mean of all clients"
BUNDLES = {
    OTHERS: Style(GREY, "-", "", 0.4),
    TOP: Style(RED, "-", "", 0.8),
    MEAN: Style(BLACK, (0, (4, 2)), "", 1.6),
}


def panels_of(
    paper: Paper, spec: FigureSpec, cells: Sequence[Cell], datasets: Sequence[str], root: Path
) -> list[Panel]:
    """Collect the panels of a figure, row after row of metrics; a panel without results has no curves."""
    axes: dict[str, list[Value]] = {"dataset": list(datasets), "method": list(spec.methods)}
    axes |= {name: list(spec.settings.get(name, [entry.default])) for name, entry in paper.settings.items()}
    if spec.panels not in (*axes, "metric"):
        raise unknown("panels of a figure", spec.panels, [*axes, "metric"])
    varying = [name for name, values in axes.items() if len(values) > 1 and name != spec.panels]
    labels = [name for name in ("method", *axes) if name in varying] or ["method"]
    labels = list(dict.fromkeys(labels))
    if "dataset" in labels:
        raise UserError(f"{spec.title}: several data sets need panels: dataset")

    def coordinates(cell: Cell) -> dict[str, Value]:
        return {"dataset": cell.dataset, "method": cell.method, **cell.setting}

    panels = []
    for metric in spec.metrics:
        for value in axes.get(spec.panels, [metric]):
            inside = [c for c in cells if spec.panels == "metric" or coordinates(c)[spec.panels] == value]
            title = metric_label(metric).capitalize()
            if spec.panels != "metric":
                title = axis_text(paper, spec.panels, value)
            title += " (stand-in)" if spec.panels == "dataset" and value not in spec.datasets else ""
            if spec.kind == "duals":
                bundles = bundles_of(inside, metric, spec.metrics[0], root)
                panels.append(Panel(title, metric, metric_label(metric), [], bundles))
                continue
            named = [(", ".join(axis_text(paper, n, coordinates(c)[n]) for n in labels), c) for c in inside]
            curves = [c for name, cell in named if (c := curve_of(name, cell, metric, root, spec.x))]
            panels.append(Panel(title, metric, metric_label(metric), curves))
    return panels


def curve_of(label: str, cell: Cell, metric: str, root: Path, x: str) -> Curve | None:
    """Return a cell's curve over its seeds, None when no seed has one.

    Mean, lowest and highest are taken where every seed that ran has a value, so a diverged seed ends the
    curve.
    """
    found = collect.curves([cell], metric, root, x)
    wide = found.pivot_table(index="x", columns="seed", values="value", dropna=False).dropna()
    if found.empty or wide.empty:
        return None
    seeds = found["seed"].nunique()
    bad = found.loc[found["status"] == collect.DIVERGED, "seed"].nunique()
    remark = f"{seeds} of {len(cell.runs)} seeds" if seeds < len(cell.runs) else ""
    remark = f"diverged in {bad} of {len(cell.runs)} seeds" if bad else remark
    return Curve(label, spread(wide), remark, broken=bool(bad))


def bundles_of(cells: Sequence[Cell], quantity: str, leading: str, root: Path) -> list[Bundle]:
    """Return what a method traced for every client in the first seed: one line per client, and their mean.

    The tenth of the clients with the largest last value of ``leading`` is a bundle of its own, the same
    clients in every panel.
    """
    for cell in cells:
        values, ranking = (collect.clients(cell, name, root) for name in (quantity, leading))
        if values is None or ranking is None:
            continue
        last = ranking.iloc[-1].sort_values(ascending=False, kind="stable")
        top = list(last.index[: math.ceil(len(last) / 10)]) if last.iloc[0] > last.iloc[-1] else []
        rest = [name for name in values.columns if name not in top]
        groups = ((OTHERS, values[rest]), (TOP, values[top]), (MEAN, values.mean(axis=1).to_frame()))
        return [Bundle(label, lines) for label, lines in groups if lines.shape[1]]
    return []


def points(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return every point drawn, tidy: panel, metric, curve, x, mean, low, high (of a bundle: over its lines)."""
    parts = []
    for panel in panels:
        drawn = {curve.label: curve.points for curve in panel.curves}
        drawn |= {bundle.label: spread(bundle.lines) for bundle in panel.bundles}
        for label, data in drawn.items():
            parts.append(data.assign(panel=panel.title, metric=panel.metric, curve=label))
    columns = ["panel", "metric", "curve", "x", "mean", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def spread(wide: pd.DataFrame) -> pd.DataFrame:
    """Reduce one column per seed or client to x, mean, low, high."""
    found = pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})
    return found.rename_axis("x").reset_index()
