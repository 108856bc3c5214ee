"""How curves look: a method has the same colour, dash and marker in every figure, plain without colour."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F",
)  # fmt: skip
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY)
"""Okabe and Ito's palette without its yellow (too pale on white): distinct for all common colour visions."""
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (1.2, 1.2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


@dataclass(frozen=True)
class Style:
    """One curve's looks: colour, matplotlib line style, marker and line width in points."""

    colour: str
    dash: Any
    marker: str
    width: float = 1.2


SOLID, DASHED, DASHDOT, DOTTED, DASHDOTDOT = DASHES
KNOWN = {
    "LocalSCGDAM": Style(RED, SOLID, "o", 1.8),
    "CoDA": Style(BLUE, DASHED, "s"),
    "LocalSGDAM": Style(GREEN, DASHDOT, "^"),
    "LocalSGDM": Style(BLACK, DOTTED, "D"),
    "LocalSGDM_RL": Style(PINK, DASHDOTDOT, "v"),
    "SCAFFOLD": Style(ORANGE, DASHED, "P"),
    "FedProx": Style(SKY, DASHDOT, "X"),
    "FedAvg": Style(GREY, DOTTED, "<"),
    "NPA": Style(BLACK, DOTTED, "D"),
    "CODA+": Style(BLUE, DASHED, "s"),
    "CODASCA": Style(RED, SOLID, "o", 1.8),
    "FCSG": Style(BLUE, DASHED, "s"),
    "FCSG-M": Style(GREEN, DASHDOT, "^"),
    "Acc-FCSG-M": Style(RED, SOLID, "o", 1.8),
    "Local-SCGD": Style(BLACK, DOTTED, "D"),
    "Local-SCGDM": Style(PINK, DASHDOTDOT, "v"),
    "Baseline": Style(BLACK, DOTTED, "D"),
    "CLIMB": Style(RED, SOLID, "o", 1.8),
    "Ratio-Loss": Style(PINK, DASHDOTDOT, "v"),
    "Focal-Loss": Style(BLUE, DASHED, "s"),
    "CyCp-FedAVG": Style(BLACK, DOTTED, "D"),
    "A-FedAVG": Style(PINK, DASHDOTDOT, "v"),
    "A-SCAFFOLD": Style(ORANGE, DASHED, "P"),
    "RS-Minimax": Style(SKY, DASHDOT, "X"),
    "RS-Pairwise": Style(GREEN, DASHDOT, "^"),
    "CyCp-Minimax": Style(BLUE, SOLID, "s", 1.8),
    "CyCp-Pairwise": Style(RED, SOLID, "o", 1.8),
}


def style_of(method: str) -> Style:
    """Return the looks of a method; one that is not listed gets looks drawn from its name."""
    if method in KNOWN:
        return KNOWN[method]
    code = zlib.crc32(method.encode())
    colour, code = COLOURS[code % len(COLOURS)], code // len(COLOURS)
    dash, code = DASHES[code % len(DASHES)], code // len(DASHES)
    return Style(colour, dash, MARKERS[code % len(MARKERS)])


def styles_in_order(labels: Sequence[str]) -> dict[str, Style]:
    """Return looks for curves that are not methods (values of a setting), by their place in the list."""
    wheel = (COLOURS, DASHES, MARKERS)
    return {label: Style(*(options[i % len(options)] for options in wheel)) for i, label in enumerate(labels)}


def styles_of(labels: Iterable[str], methods: Mapping[str, str]) -> dict[str, Style]:
    """Return looks for curves: those of ``methods`` (names by label) in their order, else by their place.

    Labels of anything but methods take all looks by their place.
    """
    labels = dict.fromkeys(labels)
    if not labels.keys() <= methods.keys():
        return styles_in_order([*labels])
    return {label: style_of(name) for label, name in methods.items() if label in labels}


RC: Any = {
    "axes.edgecolor": "#444444", "axes.grid": True, "axes.labelsize": 8, "axes.linewidth": 0.6,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 8.5,
    "figure.facecolor": "white", "font.family": "DejaVu Sans", "font.size": 8, "grid.alpha": 0.5,
    "grid.color": "#d0d0d0", "grid.linewidth": 0.5, "legend.fontsize": 8, "legend.frameon": False,
    "lines.markersize": 3.6, "pdf.fonttype": 42, "savefig.dpi": 200, "svg.hashsalt": "fedbench",
    "xtick.labelsize": 7, "xtick.major.width": 0.6, "ytick.labelsize": 7, "ytick.major.width": 0.6,
}  # fmt: skip
"""The settings every figure is drawn with; fixed fonts and salt make the files the same on every run."""
