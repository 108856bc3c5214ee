"""A figure of a paper: a panel per dataset or setting value, a curve per method, a band over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from fedbench.outputs import FIGURES, csv_text, json_text, write_forms
from fedbench.report import described
from fedbench.report.document import stamp
from fedbench.report.figures import forest, panels, pareto, predicted
from fedbench.report.figures.parts import Content, points
from fedbench.report.figures.plot import draw, render
from fedbench.results.collect import provenance
from fedbench.results.names import phrase
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import FigureSpec

FORMATS = ("pdf", "svg", "png")

SHIPPED = "what was not trained here comes with the repository"


@dataclass(frozen=True)
class Drawing:
    """A figure ready to be drawn: what is on it, its title and the words below it, the points, their origin."""

    paper: str
    name: str
    title: str
    words: str
    content: Content
    provenance: Mapping[str, object]

    @cached_property
    def picture(self) -> Figure:
        """The figure with its title and words, as a file of its own."""
        return draw(self.content, self.title, self.words)

    @cached_property
    def plain(self) -> Figure:
        """The figure without title and words, for a page or document that has them beside it."""
        return draw(self.content)

    @property
    def points(self) -> pd.DataFrame:
        """Every point drawn."""
        return points(self.content.panels)

    def csv(self) -> str:
        """Return every point drawn as CSV."""
        return csv_text(self.points)

    def forms(self) -> dict[str, str | bytes]:
        """Return what is written, by suffix."""
        return {
            **{kind: render(self.picture, kind) for kind in FORMATS},
            "csv": self.csv(),
            "json": json_text(self.provenance),
        }


def save_figure(plan: Plan, name: str) -> list[Path]:
    """Write ``figures/<paper>/<figure>.{pdf,svg,png,csv,json}`` and return the paths, the PDF first.

    The CSV holds the points drawn, the JSON where they come from. The same inputs give the same bytes.
    """
    return write_forms(FIGURES / plan.study.key / name, drawing_of(plan, name).forms())


def drawing_of(plan: Plan, name: str) -> Drawing:
    """Draw a figure from the curves on disk.

    Panels that the scale does not run are left out and named below the title; a figure without any curve says so.
    """
    paper, spec, cells = plan.study, plan.figure(name), plan.cells(name)
    content = KINDS[spec.kind](plan, name)
    shown, title = content.panels, phrase(spec.title)
    if len(shown) == 1 and shown[0].title not in title:  # a panel alone has no title of its own
        title = f"{title}: {shown[0].title}"
    notes = [described.changed(plan.config.set), *[SHIPPED] * content.shipped]
    words = "; ".join([subtitle(plan, spec, cells, content), *filter(None, notes)]) + "."
    origin = {"paper": paper.key, "figure": name, "scale": plan.scale.name, **provenance(cells)}
    origin["stamp"] = stamp(origin["commits"], [r["key"] for cell in origin["cells"] for r in cell["runs"]])
    return Drawing(paper.key, name, title, words, content, origin)


KINDS: dict[str, Callable[[Plan, str], Content]] = {
    "curves": panels.curves,
    "final": panels.finals,
    "duals": panels.duals,
    "pareto": pareto.content,
    "forest": forest.content,
    **dict.fromkeys(predicted.KINDS, predicted.content),
}
"""Gathers what a figure of each kind shows."""


def subtitle(plan: Plan, spec: FigureSpec, cells: Sequence[Cell], content: Content) -> str:
    """Say what was run, over how many seeds, which data stand in for the paper's, and what is missing."""
    shown, datasets = content.datasets, plan.study.datasets
    words = [f"Scale: {plan.scale.name}", described.lengths(cells)]
    words = [", ".join(filter(None, words))]
    counts = content.seeds or [max((len(cell.runs) for cell in cells), default=0)]
    words.append(content.runs(" to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])) if n)))
    stand_ins = [name for name in shown if name not in spec.datasets]
    replaced = spec.datasets[0] if len(spec.datasets) == 1 else "the paper's datasets"
    words += [f"{name} stands in for {replaced}" for name in stand_ins]
    words += [datasets[name].note.rstrip(".") for name in stand_ins]
    absent = [name for name in spec.datasets if name not in shown and not stand_ins]
    words += [f"not run at this scale: {', '.join(absent)}"] if absent else []
    empty = content.empty if shown and not content.missing else []
    words += [content.missing, f"no {content.what} yet: {', '.join(dict.fromkeys(empty))}" if empty else ""]
    caption = f"{phrase(spec.caption).rstrip('.')}. " if spec.caption else ""
    return caption + "; ".join(filter(None, words))
