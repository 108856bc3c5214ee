"""Where an axis begins and ends, its ticks, and the scale of a plateau near 1."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
from matplotlib.axes import Axes

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


def rising(label: str, *values: float) -> Curve:
    return Curve(
        label, pd.DataFrame({"x": range(len(values)), "mean": values, "low": values, "high": values})
    )


def height(axes: Axes, value: float) -> float:
    """Where a value lies between the bottom and the top of its panel."""
    low, high, at = (axes.transData.transform((0, y))[1] for y in (*axes.get_ylim(), value))
    return (at - low) / (high - low)


def test_a_plateau_near_1_takes_a_good_part_of_the_panel() -> None:
    looks = style.styles_in_order(["a", "b"])
    curves = [rising("a", 0.5, 0.6, 0.9, 0.95, 0.98), rising("b", 0.5, 0.62, 0.9, 0.93, 0.96)]
    panel = Panel("", "test_auc", "test AUC", curves, most=1.0)
    (axes,) = draw(Content([panel], Across("iteration"), looks, [], str, 1)).axes
    assert height(axes, 0.98) - height(axes, 0.96) > 0.1, "a linear axis would give it 0.04"
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[-1] == "1.0" and {"0.5", "0.9"} <= set(labels)
    assert 0 < height(axes, 0.5) < height(axes, 1.0) < 1


@pytest.mark.parametrize(
    "panel",
    [
        Panel("", "test_auc", "", [rising("a", 0.5, 0.955, 0.96)], most=1.0),  # no long way to the plateau
        Panel("", "test_auc", "", [rising("a", 0.1, 0.3, 0.5)], most=1.0),  # no plateau near 1
        Panel("", "test_loss", "", [rising("a", 0.99, 0.5, 0.1)], falls=True),
        Panel("", "samples", "", [rising("a", 0.5, 0.6, 0.98)]),  # 1 is nothing special
    ],
    ids=["narrow", "low", "falling", "unbounded"],
)
def test_any_other_axis_is_linear(panel: Panel) -> None:
    (axes,) = draw(Content([panel], Across("iteration"), style.styles_in_order(["a"]), [], str, 1)).axes
    assert axes.get_yscale() == "linear"


@pytest.mark.parametrize("panels", [1, 3])
def test_long_tick_labels_fit(panels: int) -> None:
    points = pd.DataFrame(
        {"x": [0, 1], "mean": [0.974, 0.976], "low": [0.974, 0.976], "high": [0.974, 0.976]}
    )
    panel = Panel("", "test_auc", "test AUC", [Curve("CoDA", points)])
    figure = draw(
        Content([panel] * panels, Across("iteration"), style.styles_in_order(["CoDA"]), [], str, panels)
    )
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert boxes[0].x0 > 0 and boxes[-1].x1 < figure.bbox.x1, "inside the figure"
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes)), "side by side"


@pytest.mark.parametrize(("low", "high"), [(0.97, 0.98), (0.6, 0.7), (0.5, 0.62)])
def test_ticks_have_no_more_digits_than_they_need(low: float, high: float) -> None:
    points = pd.DataFrame({"x": [0, 1], "mean": [low, high], "low": [low, high], "high": [low, high]})
    panel = Panel("", "test_auc", "test AUC", [Curve("CoDA", points)])
    axes = draw(Content([panel], Across("iteration"), style.styles_in_order(["CoDA"]), [], str, 1)).axes[0]
    first, second = axes.get_yticks()[:2]
    assert f"{second - first:.2e}"[:4] in {"1.00", "2.00", "5.00"}
