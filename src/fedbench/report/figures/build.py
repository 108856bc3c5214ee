"""A figure of a paper: a panel per dataset or setting value, a curve per method, a band over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedbench import measures
from fedbench.plan.cells import Cell
from fedbench.plan.figures import OF_BOARDS
from fedbench.plan.plan import Plan
from fedbench.plan.schema import FigureSpec, Paper, Scale
from fedbench.report.figures import forest, pareto, profile
from fedbench.report.figures.axis import SPREAD
from fedbench.report.figures.panels import BUNDLES, COLUMNS, Layout, layout, points
from fedbench.report.figures.parts import Across, Panel
from fedbench.report.figures.plot import draw, render
from fedbench.report.figures.style import Style, style_of, styles_in_order
from fedbench.report.files import FIGURES, write_forms
from fedbench.report.numbers import collect, described
from fedbench.report.numbers.leaderboard import Board
from fedbench.report.numbers.names import axis_name, phrase
from fedbench.report.numbers.origin import provenance
from fedbench.report.numbers.shipped import Shipped
from fedbench.report.tables.document import stamp
from fedbench.results.statistics import COVERAGE

FORMATS = ("pdf", "svg", "png")

SHIPPED = "not all of it was trained here: the rest is shipped with the repository"


@dataclass(frozen=True)
class Drawing:
    """A figure ready to be drawn: what is on it, its title and the words below it, the points, their origin."""

    paper: str
    name: str
    title: str
    words: str
    panels: list[Panel]
    styles: dict[str, Style]
    across: Across
    columns: int
    provenance: dict[str, Any]

    @cached_property
    def picture(self) -> Figure:
        """The figure with its title and words, as a file of its own."""
        return draw(self.panels, self.styles, self.title, self.words, self.across, self.columns)

    @cached_property
    def plain(self) -> Figure:
        """The figure without title and words, for a page or document that has them beside it."""
        return draw(self.panels, self.styles, "", "", self.across, self.columns)

    @property
    def points(self) -> pd.DataFrame:
        """Every point drawn."""
        return points(self.panels)

    def forms(self) -> dict[str, str | bytes]:
        """Return what is written, by suffix."""
        return {
            **{kind: render(self.picture, kind) for kind in FORMATS},
            "csv": self.points.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
            "json": json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n",
        }


def build(plan: Plan, name: str) -> list[Path]:
    """Write ``figures/<paper>/<figure>.{pdf,svg,png,csv,json}`` and return the paths, the PDF first.

    The CSV holds the points drawn, the JSON where they come from. The same inputs give the same bytes.
    """
    return write_forms(FIGURES / plan.study.key / name, make(plan, name).forms())


def make(plan: Plan, name: str) -> Drawing:
    """Draw a figure from the curves on disk.

    Panels that the scale does not run are left out and named below the title; a figure without any curve says so.
    """
    paper, scale, config, spec, cells = (
        plan.study,
        plan.scale,
        plan.config,
        plan.figure(name),
        plan.cells(name),
    )
    here = plan.datasets(spec)
    missing = missing_columns(spec, cells)
    if spec.kind in OF_BOARDS:
        boards = pareto.found(plan, name)
        here = [board.dataset for board in boards if board.dataset]
        panels, missing = _of_boards(paper, scale, spec, boards)
        shown = Layout(panels, COLUMNS, [])
    elif spec.kind == "forest":
        shown = Layout(forest.panels(plan, spec, cells, here), 1, [])
    else:
        shown = layout(paper, spec, cells, here, Shipped(plan))
    title = phrase(spec.title)
    if len(shown.panels) == 1 and shown.panels[0].title not in title:  # a panel alone has no title of its own
        title = f"{title}: {shown.panels[0].title}"
    words = subtitle(paper, spec, scale.name, cells, here, shown, missing)
    spread = "y" not in spec.log and any(panel.plateaus for panel in shown.panels)
    notes = [described.changed(config.set), *[SPREAD] * spread, *[SHIPPED] * shown.shipped]
    words = "; ".join([words, *filter(None, notes)]) + "."
    origin = {
        "paper": paper.key,
        "figure": name,
        "scale": scale.name,
        **provenance(cells),
    }
    origin["stamp"] = stamp(origin["commits"], [r["key"] for cell in origin["cells"] for r in cell["runs"]])
    styles = _styles(paper, spec, shown.panels)
    where = across(paper, spec)
    return Drawing(paper.key, name, title, words, shown.panels, styles, where, shown.columns, origin)


def _of_boards(
    paper: Paper, scale: Scale, spec: FigureSpec, boards: Sequence[Board]
) -> tuple[list[Panel], str]:
    """Return the panels of a figure that shows leaderboards, and what is to be said with them."""
    if spec.kind == "pareto":
        return pareto.panels(paper, scale, spec, boards), ""
    return profile.panels(boards, paper.defined.get("methods", []) if paper.extends else [])


def across(paper: Paper, spec: FigureSpec) -> Across:
    """Return the x axis of a figure."""
    if spec.kind == "profile":
        return profile.ACROSS
    if spec.kind == "forest":
        return forest.across(paper, spec)
    ticks: tuple[float, ...] = ()
    if spec.kind == "final":
        values = paper.values(spec)[spec.x]
        label, words = axis_name(paper, spec.x), paper.settings[spec.x].label
        label = label if label == words else f"{label} ({words})"
        ticks = tuple(sorted(map(float, values)))
    elif spec.x in ("iteration", "round", "cycle"):
        label = spec.x
    else:
        measure = measures.measure(spec.x)
        label = ", ".join(filter(None, [measure.label, measure.unit]))
    return Across(label, log="x" in spec.log, log_y="y" in spec.log, ticks=ticks)


def missing_columns(spec: FigureSpec, cells: Sequence[Cell]) -> str:
    """Name what a figure asks for and no curve on file has; empty where nothing is missing."""
    if spec.kind != "curves":
        return ""
    missing, known = collect.lacking(cells, [spec.x, *spec.metrics])
    return f"the curves on file have no {', '.join(missing)}, only {', '.join(known)}" if missing else ""


def subtitle(
    paper: Paper,
    spec: FigureSpec,
    scale: str,
    cells: Sequence[Cell],
    here: Sequence[str],
    shown: Layout,
    missing: str,
) -> str:
    """Say what was run, over how many seeds, which data stand in for the paper's, and what is missing."""
    words = [", ".join(filter(None, [f"Scale: {scale}", described.lengths(cells)]))]
    counts = shown.seeds or [max((len(cell.runs) for cell in cells), default=0)]
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])) if count)
    if spec.kind == "duals":
        words += ["one line per client, first seed"]
    elif spec.kind == "profile":
        words.append(f"{seeds or 'no'} seeds a setting, bands: {COVERAGE:.0%} bootstrap of seeds")
    elif seeds:
        interval = f"bars: {COVERAGE:.0%} t-interval, dots: each seed"
        spread = interval if spec.kind in ("final", "pareto") else "band from lowest to highest"
        spread = forest.WORDS if spec.kind == "forest" else spread
        alone = seeds == "1" and spec.kind != "forest"  # whose bars are over test samples
        words.append("one seed" if alone else f"mean over {seeds} seed{'s' * (seeds != '1')}, {spread}")
    own = [name for name in here if name not in spec.datasets]
    replaced = spec.datasets[0] if len(spec.datasets) == 1 else "the paper's datasets"
    words += [f"{name} stands in for {replaced}" for name in own]
    words += [note.rstrip(".") for name in own if (note := paper.datasets[name].note)]
    absent = [name for name in spec.datasets if name not in here and not own]
    words += [f"not run at this scale: {', '.join(absent)}"] if absent else []
    what = "value" if spec.kind in ("final", "pareto", "forest") else "curve"
    words += [missing] if missing else []
    words += (
        [f"no {what} yet: {', '.join(dict.fromkeys(shown.empty))}"]
        if shown.empty and here and not missing
        else []
    )
    return (f"{phrase(spec.caption).rstrip('.')}. " if spec.caption else "") + "; ".join(words)


def _styles(paper: Paper, spec: FigureSpec, panels: Sequence[Panel]) -> dict[str, Style]:
    if spec.kind == "profile":
        return profile.styles(panels)
    bundles = [bundle.label for panel in panels for bundle in panel.bundles]
    if bundles:
        return {label: BUNDLES[label] for label in BUNDLES if label in bundles}
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    front = {pareto.FRONT: pareto.FRONT_STYLE} if pareto.FRONT in labels else {}
    if all(label in paper.methods or label in front for label in labels):
        ordered = [name for name in spec.methods if name in labels]
        return {**{name: style_of(name) for name in ordered}, **front}
    return styles_in_order(labels)
