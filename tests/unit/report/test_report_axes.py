"""Where an axis begins and ends, its ticks, and that nothing of a figure lies over something else."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from fedbench.report.figures import style
from fedbench.report.figures.parts import Across, Content, Curve, Panel
from fedbench.report.figures.plot import draw


@pytest.mark.parametrize(
    ("curves", "cut"),
    [
        ([[0.5, 0.94, 0.98], [0.5, 0.92, 0.96]], True),
        ([[0.5, 0.94, 0.98], [0.5, 0.3, 0.96]], False),  # what fails later is seen
        ([[0.9, 0.92, 0.98]], False),  # the start is no outlier
        ([[0.5]], False),
        ([[0.5, 0.5, 0.5]], False),
    ],
)
def test_the_axis_begins_where_training_has(curves: list[list[float]], cut: bool) -> None:
    drawn = [
        Curve(str(i), pd.DataFrame({"x": range(len(c)), "mean": c, "low": c, "high": c}))
        for i, c in enumerate(curves)
    ]
    styles = {curve.label: style.Style("#000000", "-", "", 1.0) for curve in drawn}
    (axes,) = draw(Content([Panel("", "test_auc", "", drawn)], Across(""), styles, [], str, 1)).axes
    low, high = axes.get_ylim()
    assert (low > curves[0][0]) == cut
    trained = [value for curve in curves for value in curve[1:]]
    assert all(low < value < high for value in trained)
    assert not cut or high < 1, "what is left of the axis fits what is drawn"


def test_ticks_stand_at_the_values_of_a_setting() -> None:
    points = pd.DataFrame({"x": [1.0, 8, 512], "mean": 0.9, "low": 0.8, "high": 1.0})
    curve = Curve("a", points, repeats=pd.DataFrame({"x": [1.0], "value": [0.9]}))
    across = Across("I", log=True, ticks=(1.0, 8.0, 512.0))
    looks = style.styles_in_order(["a"])
    (axes,) = draw(Content([Panel("", "test_auc", "", [curve])], across, looks, [], str, 1)).axes
    assert axes.get_xscale() == "log" and axes.get_xticks().tolist() == [1, 8, 512]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "8", "512"]
    assert not axes.get_xticks(minor=True).size


def test_a_curve_that_broke_before_a_logarithmic_axis_begins_is_no_curve() -> None:
    points = pd.DataFrame({"x": [0], "mean": [0.5], "low": [0.5], "high": [0.5]})
    curve = Curve("a", points, "diverged in 1 of 1 seeds", broken=True)
    panel = Panel("", "test_auc", "", [curve])
    looks = style.styles_in_order(["a"])
    (axes,) = draw(Content([panel], Across("round", log=True), looks, [], str, 1)).axes
    assert all(line.get_xdata().size == 0 for line in axes.lines)  # type: ignore[union-attr]
    assert [text.get_text() for text in axes.texts] == ["a: diverged in 1 of 1 seeds"]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("methods", [2, 27])
def test_title_panels_words_and_legend_lie_apart(count: int, methods: int) -> None:
    names = [f"A-method-{number}" for number in range(methods)]
    values = pd.DataFrame(
        {"x": [0, 3e7], "mean": [0.974, 0.976], "low": [0.974, 0.976], "high": [0.974, 0.976]}
    )
    panels = [
        Panel(
            "K = 5, share of positives = 0.1", "test_auc", "test AUC", [Curve(name, values) for name in names]
        )
    ] * count
    content = Content(panels, Across("numbers sent"), style.styles_in_order(names), [], str, 3)
    figure = draw(content, "A title of a figure " * 5, "Words that say what was run; " * 12)
    figure.draw_without_rendering()
    (title,) = figure.texts
    boxes = [part.get_tightbbox() for part in (title, *figure.axes, *figure.legends)]
    assert len(boxes) == count + 2
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(
        axes.bbox.height > 0.9 * figure.dpi and axes.bbox.width > 0.9 * figure.dpi for axes in figure.axes
    )
