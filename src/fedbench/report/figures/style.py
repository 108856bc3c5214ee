"""How curves look: a method has the same colour, dash and marker in every figure of a study, plain without colour."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedbench.results.names import axis_text
from fedbench.study.schema import Paper

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F",
)  # fmt: skip
COLOURS = (RED, BLUE, GREEN, BLACK, PINK, ORANGE, SKY, GREY)
"""Okabe and Ito's palette without its yellow (too pale on white): distinct for all common colour visions."""
Dash = Literal["-"] | tuple[float, tuple[float, ...]]
"""A line style of matplotlib."""
DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (1.2, 1.2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
"""One more than colours, so that two methods of one colour differ where there is no line, too."""
THICK = 1.8
"""The line of a method that a study proposes, in points."""


@dataclass(frozen=True)
class Style:
    """One curve's looks: colour, matplotlib line style, marker and line width in points."""

    colour: str
    dash: Dash
    marker: str
    width: float = 1.2


OTHERS, TOP, MEAN = "other clients", "the tenth that ends highest", "mean of all clients"
FRONT = "Pareto front"
NO_METHODS = {
    OTHERS: Style(GREY, "-", "", 0.4),
    TOP: Style(RED, "-", "", 0.8),
    MEAN: Style(BLACK, (0, (4, 2)), "", 1.6),
    FRONT: Style(BLACK, (0, (4, 2)), "", 0.8),
}
"""The looks of curves that stand for no method, by their labels."""


def styles_in_order(labels: Sequence[str]) -> dict[str, Style]:
    """Return looks for curves by their place in the list; the first eight differ in colour, 72 in some way."""
    wheel = zip(itertools.cycle(COLOURS), itertools.cycle(DASHES), itertools.cycle(MARKERS), strict=False)
    return {label: Style(*looks) for label, looks in zip(labels, wheel, strict=False)}


def styles_of_methods(paper: Paper) -> dict[str, Style]:
    """Return the looks of a study's methods by name, the same in all its figures; what it proposes is thick."""
    looks = styles_in_order([*paper.methods])
    return looks | {name: replace(looks[name], width=THICK) for name in paper.proposes}


def styles_of(labels: Iterable[str], paper: Paper) -> dict[str, Style]:
    """Return looks for curves, in the order of a legend: those of methods, by their labels, or else by their place."""
    methods = {axis_text(paper, "method", name): look for name, look in styles_of_methods(paper).items()}
    labels = dict.fromkeys(labels)
    named = [label for label in labels if label not in NO_METHODS]
    known = (methods if methods.keys() >= {*named} else styles_in_order(named)) | NO_METHODS
    return {label: look for label, look in known.items() if label in labels}


RC: Any = {
    "axes.edgecolor": "#444444", "axes.grid": True, "axes.labelsize": 8, "axes.linewidth": 0.6,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 8.5,
    "figure.facecolor": "white", "font.family": "DejaVu Sans", "font.size": 8, "grid.alpha": 0.5,
    "grid.color": "#d0d0d0", "grid.linewidth": 0.5, "legend.fontsize": 8, "legend.frameon": False,
    "lines.markersize": 3.6, "pdf.fonttype": 42, "savefig.dpi": 200, "svg.hashsalt": "fedbench",
    "xtick.labelsize": 7, "xtick.major.width": 0.6, "ytick.labelsize": 7, "ytick.major.width": 0.6,
}  # fmt: skip
"""The settings every figure is drawn with; fixed fonts and salt make the files the same on every run."""
