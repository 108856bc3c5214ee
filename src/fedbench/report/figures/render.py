"""A figure as the bytes of a file, and as SVG small enough for a page with hundreds."""

from __future__ import annotations

import io
import re

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from fedbench.report.figures.style import RC

NO_DATES: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "fedbench"},
    "svg": {"Date": None, "Creator": "fedbench"},
    "png": {"Software": None},
}
FONTS = "DejaVu Sans,Verdana,sans-serif"
"""Verdana has nearly the widths of DejaVu Sans, and systems without the one have the other."""
UNUSED = re.compile(
    r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->|; font-family: 'DejaVu Sans'"
    r'| id="[\w.]+_\d+"| transform="rotate\(-0 .*?\)"',
    re.DOTALL,
)
"""What stands before the figure, who made it, comments, the font, names that nothing refers to, turns by nothing."""


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file of ``kind`` (pdf, svg, png), free of dates and versions.

    The letters of an ``svg`` are lines, which look alike everywhere.
    """
    stream = io.BytesIO()
    with matplotlib.rc_context({**RC, "svg.fonttype": "path"}):
        figure.savefig(stream, format=kind, metadata=NO_DATES.get(kind))
    return stream.getvalue()


def small_svg(figure: Figure) -> str:
    """Return a figure as SVG on one line, a third as large as matplotlib writes it, with text in the reader's font."""
    stream = io.StringIO()
    with matplotlib.rc_context({**RC, "svg.fonttype": "none"}):
        # savefig would draw twice
        FigureCanvasSVG(figure).print_svg(stream, metadata=NO_DATES["svg"])  # type: ignore[no-untyped-call]
    drawn = UNUSED.sub("", stream.getvalue()).replace("xlink:href", "href")
    drawn = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d)\d{3,}", r"\1", tag[0]), drawn)  # not in texts
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
