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
from fedbench.report.figures.content import SAMPLES, Content
from fedbench.report.figures.plot import Styles, draw
from fedbench.report.figures.render import render
from fedbench.report.figures.style import styles_of
from fedbench.results.collect import provenance
from fedbench.results.names import phrase
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import FigureSpec

FORMATS = ("pdf", "svg", "png")
IN_CSV = ("panel", "metric", "curve", "x", "mean", "low", "high", "published")
"""What the CSV has of each point; of a forest plot its samples, too."""
SHIPPED = "what was not trained here is a reference result"


@dataclass(frozen=True)
class Drawing:
    """A figure ready to be drawn: what is on it, its looks, its title and the words below it, the points' origin."""

    name: str
    title: str
    words: str
    content: Content
    styles: Styles
    provenance: Mapping[str, object]

    @cached_property
    def picture(self) -> Figure:
        """The figure with its title and words, as a file of its own."""
        return draw(self.content, self.styles, self.title, self.words)

    @cached_property
    def plain(self) -> Figure:
        """The figure without title and words, for a page or document that has them beside it."""
        return draw(self.content, self.styles)

    @property
    def points(self) -> pd.DataFrame:
        """Every point drawn, with the columns of its CSV."""
        samples = SAMPLES if self.content.look == "rows" else ()
        return self.content.points.reindex(columns=[*IN_CSV, *samples])

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

    Panels that the scale does not run are left out and named below the title; a figure without any curve says so. Of a
    figure that the scale does not run at all the reference results are drawn, as tables show them.
    """
    paper, spec = plan.study, plan.figure(name)
    content = KINDS[spec.kind](plan, name)
    if not plan.datasets(spec):
        of_all = plan.at(plan.config.model_copy(update={"datasets": spec.datasets}))
        drawn = KINDS[spec.kind](of_all, name)
        plan, content = (of_all, drawn) if len(drawn.points) else (plan, content)
    cells = plan.cells(name)
    shown, points, title = content.panels, content.points, phrase(spec.title)
    if len(shown) == 1 and shown[0].title not in title:  # a panel alone has no title of its own
        title = f"{title}: {shown[0].title}"
    more = [described.changed(plan.config.set), SHIPPED if points["shipped"].any() else ""]
    words = "; ".join([subtitle(plan, spec, cells, content), *filter(None, more)]) + "."
    styles = {} if content.look == "matrix" else styles_of(points["curve"], paper)
    origin = {"paper": paper.key, "figure": name, "scale": plan.scale.name, **provenance(cells)}
    words = " ".join(filter(None, [words, described.other_code(cells, origin["other_code"])]))
    origin["stamp"] = stamp(origin["commits"], [r["key"] for cell in origin["cells"] for r in cell["runs"]])
    return Drawing(name, title, words, content, styles, origin)


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
    shown, datasets = plan.datasets(spec), plan.study.datasets
    trained = described.lengths(cell.runs[0] for cell in cells)
    words = [", ".join(filter(None, [f"Scale: {plan.scale.name}", trained]))]
    words.append(averaged(content, max((len(cell.runs) for cell in cells), default=0)))
    stand_ins = [name for name in shown if name not in spec.datasets]
    replaced = spec.datasets[0] if len(spec.datasets) == 1 else "the paper's datasets"
    words += [f"{name} stands in for {replaced}" for name in stand_ins]
    words += [datasets[name].note.rstrip(".") for name in stand_ins]
    absent = [name for name in spec.datasets if name not in (*shown, *content.elsewhere) and not stand_ins]
    words += [f"not run at this scale: {', '.join(absent)}"] if absent else []
    empty = ", ".join(dict.fromkeys(content.empty)) if shown and not content.missing else ""
    what = "value" if content.look in ("seeds", "rows") else "curve"
    words += [content.missing, f"no {what} yet: {empty}" if empty else ""]
    caption = f"{phrase(spec.caption).rstrip('.')}. " if spec.caption else ""
    return caption + "; ".join(filter(None, words))


def averaged(content: Content, planned: int) -> str:
    """Say over how many seeds what is drawn is a mean, or would be; nothing where nothing ran or is planned."""
    counts = {*content.points["seeds"]} - {0} or {planned}
    if counts == {0}:
        return ""
    words = content.alone if counts == {1} else content.over
    return words.replace("{}", described.counted(described.span(counts), "seed"))
