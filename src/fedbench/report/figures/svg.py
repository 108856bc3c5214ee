"""Figures as small SVG: text instead of outlines of letters, coordinates to a tenth of a point, each style once."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from fedbench.report.figures.plot import render

FONTS = "DejaVu Sans,Verdana,sans-serif"
"""Verdana has nearly the widths of DejaVu Sans, and systems without the one have the other."""
UNUSED = re.compile(
    r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->|; font-family: 'DejaVu Sans'"
    r'| id="[\w.]+_\d+"| transform="rotate\(-0 .*?\)"',
    re.DOTALL,
)
"""What stands before the figure, who made it, comments, the font, names that nothing refers to, turns by nothing."""


def small_svg(figure: Figure) -> str:
    """Return a figure as SVG on one line, a third as large as matplotlib writes it."""
    drawn = UNUSED.sub("", render(figure, "svg", text=True).decode()).replace("xlink:href", "href")
    drawn = re.sub(r"(\.\d)\d{3,}", r"\1", drawn)
    drawn = re.sub(r" d=\"[^\"]*", lambda path: re.sub(r"(?<!=)\s*([MLCQz])\s*", r"\1", path[0]), drawn)
    drawn = _numbered(drawn, r"(?<=[#\"])[mp][0-9a-f]{10}\b", "i")
    rules: dict[str, str] = {}
    drawn = re.sub(
        r' style="(.*?)"', lambda style: f' class="{rules.setdefault(style[1], f"s{len(rules)}")}"', drawn
    )
    css = f"text{{font-family:{FONTS}}}" + "".join(f".{name}{{{rule}}}" for rule, name in rules.items())
    return " ".join(drawn.replace("</style>", f"{css}</style>", 1).split())


def _numbered(drawn: str, pattern: str, letter: str) -> str:
    """Replace what matches by short names, in order of appearance."""
    names: dict[str, str] = {}
    return re.sub(pattern, lambda name: names.setdefault(name[0], f"{letter}{len(names)}"), drawn)
