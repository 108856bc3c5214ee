"""A small SVG shows what matplotlib's own shows: the same texts, shapes and colours at the same places."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.figure import Figure

from fedbench.report.figures.plot import render
from fedbench.report.figures.svg import small_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figure() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    for slope in range(1, 40):
        axes.plot([0, 1, 2], [0, slope, 4.5], marker="o", alpha=0.45, color="#d55e00", linestyle="--")
    axes.set_title("5 < α & more")
    return figure


def shapes(svg: str, tag: str) -> list[tuple[float, ...]]:
    """The coordinates of elements of a kind."""
    attributes = ("d", "x", "y", "transform")
    elements = [*ElementTree.fromstring(svg).iter(SVG + tag)]
    told = [" ".join(e.get(name, "") for name in attributes) for e in elements]
    told = [re.sub(r"rotate\(-0 .*?\)", "", text) for text in told]
    return [tuple(float(number) for number in re.findall(r"-?\d+\.?\d*", text)) for text in told]


def styles(svg: str) -> list[str]:
    """The style of each element that has one, without its font."""
    root = ElementTree.fromstring(svg)
    css = "".join(e.text or "" for e in root.iter(f"{SVG}style"))
    rules = dict(re.findall(r"\.(s\d+)\{(.*?)\}", css))
    told = [e.get("style") or rules.get(e.get("class", ""), "") for e in root.iter()]
    return [re.sub(r"; font-family: 'DejaVu Sans'", "", style) for style in told if style]


def test_shapes_texts_and_styles_are_those_of_the_figure(figure: Figure) -> None:
    small, usual = small_svg(figure), render(figure, "svg", text=True).decode()
    for tag in ("path", "use", "text", "rect"):
        for ours, theirs in zip(shapes(small, tag), shapes(usual, tag), strict=True):
            assert ours == pytest.approx(theirs, abs=0.1), tag
    assert styles(small) == styles(usual) and len({*styles(small)}) > 5
    texts = [e.text for e in ElementTree.fromstring(small).iter(f"{SVG}text")]
    assert "5 < α & more" in texts
    assert "font-family:DejaVu Sans,Verdana,sans-serif" in small
    assert len(small) < len(render(figure, "svg")) / 3


def test_references_lead_to_what_they_led_to(figure: Figure) -> None:
    small, usual = (
        ElementTree.fromstring(svg) for svg in (small_svg(figure), render(figure, "svg", text=True).decode())
    )
    ids = {e.get("id"): e for e in small.iter() if e.get("id")}
    theirs = {e.get("id"): e for e in usual.iter() if e.get("id")}
    pairs = [*zip(small.iter(f"{SVG}use"), usual.iter(f"{SVG}use"), strict=True)]
    assert len(pairs) > 100
    for ours, their in pairs:
        target = ids[ours.get("href", "")[1:]]
        assert target.tag == theirs[their.get("{http://www.w3.org/1999/xlink}href", "")[1:]].tag
    clips = set(re.findall(r"url\(#(\w+)\)", small_svg(figure)))
    assert clips and clips <= ids.keys()
