"""The small charts of cells: where points land, what is left out, what is marked."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.report.figures.style import style_of
from fedbench.report.page.curves import HEIGHT, WIDTH, Line, chart, read_curve

STYLE = style_of("CoDA")


def parse(svg: str) -> ElementTree.Element:
    """Parse a chart; broken XML is an error."""
    return ElementTree.fromstring(svg)


def polyline(svg: ElementTree.Element, css: str) -> list[list[tuple[float, float]]]:
    """The points of all lines of a class."""
    result = [e for e in svg.iter("polyline") if e.get("class") == css]
    return [[tuple(map(float, p.split(","))) for p in (e.get("points") or "").split()] for e in result]  # type: ignore[misc]


def test_points_are_in_proportion_and_higher_is_up() -> None:
    svg = parse(chart([Line(0, [(0, 0.5), (10, 0.7), (40, 0.9)], False)], "test_auc", "round", STYLE))
    ((a, b, c),) = polyline(svg, "mean")
    assert (b[0] - a[0]) * 3 == pytest.approx(c[0] - b[0], abs=0.4)
    assert a[1] - b[1] == pytest.approx(b[1] - c[1], abs=0.2) and a[1] > c[1]
    assert not polyline(svg, "seed"), "one seed is its own mean"
    assert next(e for e in svg.iter("polyline")).get("stroke") == STYLE.colour
    names = [e.text for e in svg.iter("text") if e.get("class") == "name"]
    assert names == ["test AUC", "round"]


def test_the_mean_ends_where_a_seed_diverged_and_the_end_is_marked() -> None:
    full, cut = Line(0, [(0, 0.4), (1, 0.6), (2, 0.8)], False), Line(3, [(0, 0.6), (1, 0.8)], True)
    svg = parse(chart([full, cut], "test_auc", "round", STYLE))
    (mean,) = polyline(svg, "mean")
    assert len(mean) == 2 and [len(line) for line in polyline(svg, "seed")] == [3, 2]
    (cross,) = [e for e in svg.iter("path") if e.get("class") == "cross"]
    place = [float(v) for v in re.findall(r"[\d.]+", cross.get("transform") or "")]
    assert place == pytest.approx(polyline(svg, "seed")[1][-1])
    assert cross.findtext("title") == "seed 3 diverged after this"


def test_the_published_value_is_a_line_inside_the_chart() -> None:
    svg = parse(chart([Line(0, [(0, 0.5), (1, 0.6)], False)], "test_auc", "round", STYLE, printed=0.95))
    (line,) = [e for e in svg.iter("path") if e.get("class") == "published"]
    height = float(re.findall(r"[\d.]+", line.get("d") or "")[1])
    ((_, last),) = [points[-2:] for points in polyline(svg, "mean")]
    assert 0 < height < last[1]
    assert "published 0.95" in [e.text for e in svg.iter("text")]


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.floats(-1e30, 1e30)),
        min_size=1,
        max_size=8,
        unique_by=lambda p: p[0],
    ),
    st.one_of(st.just(math.nan), st.floats(-1e3, 1e3)),
)
def test_any_finite_curve_stays_inside_the_picture(points: list[tuple[int, float]], printed: float) -> None:
    line = Line(0, [(float(x), y) for x, y in sorted(points)], False)
    svg = parse(chart([line], "train_loss", "iteration", STYLE, printed))
    (mean,) = polyline(svg, "mean")
    assert len(mean) == len(points)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in mean)


def test_undefined_points_are_left_out() -> None:
    curve = read_curve(b"iteration,test_auc\n0,\n10,nan\n20,0.5\n30,inf\n40,0.75\n")
    line = Line.of(0, curve, "iteration", "test_auc", False)
    assert line.points == [(20.0, 0.5), (40.0, 0.75)]
    assert chart([Line.of(0, curve, "iteration", "train_loss", False)], "x", "iteration", STYLE) == ""
    assert read_curve(b"") == {}
