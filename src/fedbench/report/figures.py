"""A figure of a paper: a panel per data set or setting value, a curve per method, a band over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedbench.cells import (
    CONFIG_DIR,
    Cell,
    Config,
    FigureSpec,
    Paper,
    Scale,
    TableSpec,
    Value,
    cells_of,
    datasets_run,
    load_paper,
    load_scale,
)
from fedbench.errors import UserError, unknown
from fedbench.report import claims, collect, compare
from fedbench.report.document import stamp
from fedbench.report.files import FIGURES, write
from fedbench.report.names import axis_text, metric_label
from fedbench.report.plot import Curve, Panel, draw, render
from fedbench.report.style import Style, style_of, styles_in_order
from fedbench.report.tables import DECIMALS

FORMATS = ("pdf", "svg", "png")


def build(paper_key: str, figure_name: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``figures/<paper>/<figure>.{pdf,svg,png,csv,json}`` and return the paths, the PDF first.

    The CSV holds the points drawn, the JSON where they come from. The same inputs give the same bytes. Panels
    that the scale does not run are left out and named below the title; a figure without any curve says so.
    """
    config_dir = root / CONFIG_DIR
    paper, scale = load_paper(paper_key, config_dir), load_scale(config.scale, config_dir)
    if figure_name not in paper.figures:
        raise unknown(f"figure of {paper_key}", figure_name, paper.figures)
    spec = paper.figures[figure_name]
    cells = cells_of(config, paper_key, figure_name, config_dir)
    here = datasets_run(config, paper, scale, spec)
    panels = panels_of(paper, spec, cells, here, root)
    drawn = [panel for panel in panels if panel.curves]
    words = subtitle(spec, scale.name, cells, here, [panel.title for panel in panels if not panel.curves])
    findings = check_claims(config, paper, scale, figure_name, cells, root)
    words = " ".join([words, *map(str, findings)])
    columns = 3 if len(spec.metrics) == 1 else len(drawn) // len(spec.metrics)
    figure = draw(drawn, _styles(paper, spec, drawn), spec.title.rstrip("."), words, spec.x, columns)
    origin = {
        "paper": paper_key,
        "figure": figure_name,
        "scale": scale.name,
        **collect.provenance(cells, root),
    }
    origin["stamp"] = stamp(origin["commits"], [r["key"] for cell in origin["cells"] for r in cell["runs"]])
    stem = root / FIGURES / paper_key / figure_name
    forms: dict[str, str | bytes] = {kind: render(figure, kind) for kind in FORMATS}
    forms["csv"] = points(drawn).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    forms["json"] = json.dumps(origin, indent=1, ensure_ascii=False) + "\n"
    return [write(stem.with_name(f"{stem.name}.{suffix}"), content) for suffix, content in forms.items()]


def subtitle(
    spec: FigureSpec, scale: str, cells: Sequence[Cell], here: Sequence[str], empty: Sequence[str]
) -> str:
    """Say what was run, over how many seeds, which data stand in for the paper's, and what is missing."""
    words = [f"Scale: {scale}"]
    seeds = max((len(cell.runs) for cell in cells), default=0)
    if seeds:
        words.append("one seed" if seeds == 1 else f"mean over {seeds} seeds, band from lowest to highest")
    own = [name for name in here if name not in spec.datasets]
    replaced = spec.datasets[0] if len(spec.datasets) == 1 else "the paper's data sets"
    words += [f"{name} stands in for {replaced}" for name in own]
    absent = [name for name in spec.datasets if name not in here and not own]
    words += [f"not run at this scale: {', '.join(absent)}"] if absent else []
    words += [f"no curve yet: {', '.join(dict.fromkeys(empty))}"] if empty and here else []
    return "; ".join(words) + "."


def check_claims(
    config: Config, paper: Paper, scale: Scale, figure_name: str, cells: Sequence[Cell], root: Path
) -> list[claims.Finding]:
    """Hold the paper's claims about a figure against the final values of its curves."""
    spec = paper.figures[figure_name]
    wanted = [claim for claim in paper.claims if claim.table == figure_name]
    shared = spec.model_dump(include={"title", "datasets", "methods", "settings", "metrics"})
    compared, _ = compare.compare(config, paper, scale, TableSpec(**shared), cells, root)
    return [claims.check(claim, compared, DECIMALS) for claim in wanted]


def panels_of(
    paper: Paper, spec: FigureSpec, cells: Sequence[Cell], datasets: Sequence[str], root: Path
) -> list[Panel]:
    """Collect the panels of a figure, row after row of metrics; a panel without results has no curves."""
    axes: dict[str, list[Value]] = {"dataset": list(datasets), "method": list(spec.methods)}
    axes |= {name: list(spec.settings.get(name, [entry.default])) for name, entry in paper.settings.items()}
    if spec.panels not in axes:
        raise unknown("panels of a figure", spec.panels, axes)
    varying = [name for name, values in axes.items() if len(values) > 1 and name != spec.panels]
    labels = [name for name in ("method", *axes) if name in varying] or ["method"]
    labels = list(dict.fromkeys(labels))
    if "dataset" in labels:
        raise UserError(f"{spec.title}: several data sets need panels: dataset")

    def coordinates(cell: Cell) -> dict[str, Value]:
        return {"dataset": cell.dataset, "method": cell.method, **cell.setting}

    panels = []
    for metric in spec.metrics:
        for value in axes[spec.panels]:
            inside = [cell for cell in cells if coordinates(cell)[spec.panels] == value]
            named = [(", ".join(axis_text(paper, n, coordinates(c)[n]) for n in labels), c) for c in inside]
            curves = [c for name, cell in named if (c := curve_of(name, cell, metric, root, spec.x))]
            title = axis_text(paper, spec.panels, value)
            title += " (stand-in)" if spec.panels == "dataset" and value not in spec.datasets else ""
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
    points = pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})
    return Curve(label, points.reset_index(), remark, broken=bool(bad))


def points(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return every point drawn, tidy: panel, metric, curve, x, mean, low, high."""
    parts = [
        curve.points.assign(panel=panel.title, metric=panel.metric, curve=curve.label)
        for panel in panels
        for curve in panel.curves
    ]
    columns = ["panel", "metric", "curve", "x", "mean", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _styles(paper: Paper, spec: FigureSpec, panels: Sequence[Panel]) -> dict[str, Style]:
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    if all(label in paper.methods for label in labels):
        ordered = [name for name in spec.methods if name in labels]
        return {name: style_of(name) for name in ordered}
    return styles_in_order(labels)
