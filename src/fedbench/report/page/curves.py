"""Pictures inside the page: figures, and the curves of all methods in one setting."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedbench.errors import UserError
from fedbench.report.figures.content import Content, Panel, joined_curves
from fedbench.report.figures.panels import Printed, learning_curve
from fedbench.report.figures.plot import draw
from fedbench.report.figures.render import small_svg
from fedbench.report.figures.style import styles_of
from fedbench.results import collect
from fedbench.results.names import axis_text
from fedbench.study.cells import Cell
from fedbench.study.schema import Paper

LOSS = "train_loss"
PIXELS = 130
"""Of the page for an inch of a figure."""
POINTS, TICKS = 50, 4
"""At most, of a curve and of an axis of a cell's panels, which are some 200 pixels wide."""


PLAIN = " <>/:;,=()!*+-@[]{}|'"
"""Stands as it is in an address between double quotes, besides letters and digits."""


class Picture(NamedTuple):
    """A picture's data address, and how many pixels of the page it is wide."""

    address: str
    width: int


def picture(figure: Figure) -> Picture:
    """Return a figure as small SVG in an address."""
    drawn = small_svg(figure).replace('"', "'")
    return Picture(f"data:image/svg+xml,{quote(drawn, safe=PLAIN)}", round(figure.get_figwidth() * PIXELS))


def chart(
    paper: Paper, cells: Sequence[Cell], metrics: Sequence[str], printed: Printed, shipped: collect.Tables
) -> Picture | None:
    """Draw metrics and the training loss of the methods of one setting, a panel each; None without any curve.

    Args:
        paper: the study.
        cells: of one dataset and setting, of a method each.
        metrics: what its tables and figures show of them.
        printed: the published final values, thin lines.
        shipped: curves of runs that were not trained here, by key.
    """
    x = "round" if cells[0].runs[0].train.rounds is not None else "iteration"
    panels: list[Panel] = []
    for metric in dict.fromkeys([*metrics, LOSS]):
        drawn = list[pd.DataFrame]()
        for cell in cells:
            with contextlib.suppress(UserError):  # a damaged curve is not drawn, its run's record is whole
                method = axis_text(paper, "method", cell.method)
                if (points := learning_curve(method, cell, metric, x, printed, shipped)) is not None:
                    drawn.append(_thinned(points))
        if drawn:
            label, points = paper.measure(metric).label, joined_curves(drawn)
            panels.append(Panel(label, metric, label, points.assign(remark="") if panels else points))
    if not panels:
        return None
    content = Content(panels, x_label=x)
    figure = draw(content, styles_of(content.points["curve"], paper))
    for axes in figure.axes:
        axes.locator_params(nbins=TICKS)
    return picture(figure)


def _thinned(points: pd.DataFrame) -> pd.DataFrame:
    """Return :data:`POINTS` of a curve's points at most, the first and the last among them."""
    return points.iloc[np.linspace(0, len(points) - 1, min(len(points), POINTS)).round().astype(int)]
