"""Pictures and files inside the page: as data addresses, so that it needs nothing beside it."""

from __future__ import annotations

import base64
import io
from typing import NamedTuple

from matplotlib.figure import Figure
from PIL import Image

from fedbench.report.figures.plot import render

PIXELS = 130
"""Of the page for an inch of a figure."""
PALETTE = 64
"""Colours of a picture that is embedded as pixels."""


class Picture(NamedTuple):
    """A picture's data address, and how many pixels of the page it is wide."""

    address: str
    width: int


def address(kind: str, content: bytes) -> str:
    """Return content as a data address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def lines(figure: Figure) -> Picture:
    """Return a figure as lines and letters."""
    return Picture(address("image/svg+xml", render(figure, "svg")), _width(figure))


def pixels(figure: Figure) -> Picture:
    """Return a figure as pixels in few colours: thousands of marks take less so than as lines."""
    width, height = (int(inches * PIXELS) for inches in figure.get_size_inches())
    picture = Image.frombytes("RGBA", (width, height), render(figure, "rgba", dpi=PIXELS))
    stream = io.BytesIO()
    picture.convert("RGB").quantize(PALETTE, Image.Quantize.MAXCOVERAGE).save(stream, "png")
    return Picture(address("image/png", stream.getvalue()), _width(figure))


def _width(figure: Figure) -> int:
    return round(figure.get_figwidth() * PIXELS)
