"""Pictures and files inside the page: as data addresses, so that it needs nothing beside it."""

from __future__ import annotations

import base64
from typing import NamedTuple

from matplotlib.figure import Figure

from fedbench.report.figures.plot import render

PIXELS = 130
"""Of the page for an inch of a figure."""


class Picture(NamedTuple):
    """A picture's data address, and how many pixels of the page it is wide."""

    address: str
    width: int


def address(kind: str, content: bytes) -> str:
    """Return content as a data address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def picture(figure: Figure) -> Picture:
    """Return a figure as lines and text; its letters as lines would take most of the time and room."""
    drawn = render(figure, "svg", text=True)
    return Picture(address("image/svg+xml", drawn), round(figure.get_figwidth() * PIXELS))
