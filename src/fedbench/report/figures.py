"""A figure of a paper: a panel per data set or setting value, a curve per method, a band over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedbench.cells import Cell, cells_of, datasets_run
from fedbench.configuration import CONFIG_DIR, load_paper, load_scale
from fedbench.errors import unknown
from fedbench.report import claims, collect, compare
from fedbench.report.document import stamp
from fedbench.report.files import FIGURES, write_forms
from fedbench.report.names import phrase
from fedbench.report.panels import BUNDLES, panels_of, points
from fedbench.report.plot import Panel, draw, render
from fedbench.report.style import Style, style_of, styles_in_order
from fedbench.report.tables import DECIMALS
from fedbench.schema import Config, FigureSpec, Paper, Scale, TableSpec

FORMATS = ("pdf", "svg", "png")


@dataclass(frozen=True)
class Drawing:
    """A figure ready to be written: its picture, the words below its title, the points drawn, their origin."""

    paper: str
    name: str
    title: str
    words: str
    picture: Figure
    points: pd.DataFrame
    provenance: dict[str, Any]

    def forms(self) -> dict[str, str | bytes]:
        """Return what is written, by suffix."""
        return {
            **{kind: render(self.picture, kind) for kind in FORMATS},
            "csv": self.points.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
            "json": json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n",
        }


def build(paper_key: str, figure_name: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``figures/<paper>/<figure>.{pdf,svg,png,csv,json}`` and return the paths, the PDF first.

    The CSV holds the points drawn, the JSON where they come from. The same inputs give the same bytes.
    """
    drawing = make(paper_key, figure_name, config, root)
    return write_forms(root / FIGURES / paper_key / figure_name, drawing.forms())


def make(paper_key: str, figure_name: str, config: Config, root: Path = Path()) -> Drawing:
    """Draw a figure from the curves on disk.

    Panels that the scale does not run are left out and named below the title; a figure without any curve says so.
    """
    config_dir = root / CONFIG_DIR
    paper, scale = load_paper(paper_key, config_dir), load_scale(config.scale, config_dir)
    if figure_name not in paper.figures:
        raise unknown(f"figure of {paper_key}", figure_name, paper.figures)
    spec = paper.figures[figure_name]
    cells = cells_of(config, paper_key, figure_name, config_dir)
    here = datasets_run(config, paper, scale, spec)
    panels = panels_of(paper, spec, cells, here, root)
    drawn = [panel for panel in panels if panel.curves or panel.bundles]
    empty = [panel.title for panel in panels if panel not in drawn]
    findings = check_claims(config, paper, scale, figure_name, cells, root)
    title = phrase(spec.title)
    words = " ".join([subtitle(paper, spec, scale.name, cells, here, empty), *map(str, findings)])
    columns = 3 if spec.panels == "metric" or len(spec.metrics) == 1 else len(drawn) // len(spec.metrics)
    origin = {
        "paper": paper_key,
        "figure": figure_name,
        "scale": scale.name,
        "claims": [finding.as_dict() for finding in findings],
        **collect.provenance(cells, root),
    }
    origin["stamp"] = stamp(origin["commits"], [r["key"] for cell in origin["cells"] for r in cell["runs"]])
    picture = draw(drawn, _styles(paper, spec, drawn), title, words, spec.x, columns)
    return Drawing(paper_key, figure_name, title, words, picture, points(drawn), origin)


def subtitle(
    paper: Paper,
    spec: FigureSpec,
    scale: str,
    cells: Sequence[Cell],
    here: Sequence[str],
    empty: Sequence[str],
) -> str:
    """Say what was run, over how many seeds, which data stand in for the paper's, and what is missing."""
    words = [phrase(spec.caption)] if spec.caption else []
    words.append(f"Scale: {scale}")
    seeds = max((len(cell.runs) for cell in cells), default=0)
    if spec.kind == "duals":
        words += ["one line per client, first seed"]
    elif seeds:
        words.append("one seed" if seeds == 1 else f"mean over {seeds} seeds, band from lowest to highest")
    own = [name for name in here if name not in spec.datasets]
    replaced = spec.datasets[0] if len(spec.datasets) == 1 else "the paper's data sets"
    words += [f"{name} stands in for {replaced}" for name in own]
    words += [note.rstrip(".") for name in own if (note := paper.datasets[name].note)]
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


def _styles(paper: Paper, spec: FigureSpec, panels: Sequence[Panel]) -> dict[str, Style]:
    bundles = [bundle.label for panel in panels for bundle in panel.bundles]
    if bundles:
        return {label: BUNDLES[label] for label in BUNDLES if label in bundles}
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    if all(label in paper.methods for label in labels):
        ordered = [name for name in spec.methods if name in labels]
        return {name: style_of(name) for name in ordered}
    return styles_in_order(labels)
