"""The performance profile of methods over the settings of a leaderboard: how often each comes near to the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd

from fedbench.errors import UserError
from fedbench.plan.plan import Plan
from fedbench.report.figures.pareto import boards_of
from fedbench.report.figures.parts import Across, Bundle, Content, Curve, Panel
from fedbench.report.figures.style import Style, styles_in_order
from fedbench.report.numbers.leaderboard import Board
from fedbench.report.numbers.names import axis_text
from fedbench.results.profiles import band, profile
from fedbench.results.statistics import COVERAGE, Array

PALE = "#BBBBBB"
LARGEST = 10.0
"""Factor at which the axis ends."""
POINTS = 120
NAMED = 8
"""Methods that have a curve of their own; the others are thin lines without a name."""
FEW = 4
"""Settings below which a profile has hardly any steps."""
ACROSS = Across("error, as a multiple of the smallest mean error of the setting", log=True)


def content(plan: Plan, name: str) -> Content:
    """Return the profile over the boards of a figure.

    Drawn are the methods that all boards have; those with the largest shares, and the user's own, have a name.

    Raises:
        UserError: the metric has no best possible value, so that there is no error to compare.
    """
    shown = boards_of(plan, name)
    added = plan.study.defined.get("methods", []) if plan.study.extends else []
    panels, said = (
        _panels(shown, added, lambda method: axis_text(plan.study, "method", method)) if shown else ([], "")
    )
    styles = styles_in_order([curve.label for panel in panels for curve in panel.curves])
    styles |= {bundle.label: Style(PALE, "-", "", 0.6) for panel in panels for bundle in panel.bundles}
    datasets = [str(board.dataset) for board in shown]
    return Content(panels, ACROSS, styles, datasets, _runs, missing=said, what="curve")


def _runs(seeds: str) -> str:
    return f"{seeds or 'no'} seeds a setting, bands: {COVERAGE:.0%} bootstrap of seeds"


def _panels(
    shown: Sequence[Board], always_named: Collection[str], label: Callable[[str], str]
) -> tuple[list[Panel], str]:
    """Return the panel of some boards, and what is to be said with it."""
    measured = [_ratios(board) for board in shown]
    everywhere = [method for method in measured[0] if all(method in of for of in measured)]
    gone = sorted({method for of in measured for method in of} - {*everywhere})
    ratios = {method: [of[method] for of in measured] for method in everywhere}
    drawn = np.concatenate([np.ones(1), *(of for several in ratios.values() for of in several)])
    factors = np.geomspace(drawn[drawn > 0].min(), min(LARGEST, max(drawn.max(), 1.1)), POINTS)
    shares = {method: profile(several, factors) for method, several in ratios.items()}
    order = sorted(shares, key=lambda method: -float(shares[method].mean()))
    rest = [method for method in order[NAMED:] if method not in always_named]
    shipped = any(line.first.shipped for board in shown for line in board.ranked)
    curves = [
        _curve(label(method), ratios[method], factors, shipped) for method in order if method not in rest
    ]
    lines = pd.DataFrame({method: shares[method] for method in rest}, index=factors)
    bundles = [Bundle(f"{len(rest)} others", lines)] if rest else []
    names = [f"{board.dataset} ({', '.join(sorted(board.scales))})" for board in shown]
    said = [f"settings: {', '.join(names)}", *["fewer than four settings say little"] * (len(shown) < FEW)]
    said += [f"not run on all of them: {', '.join(gone)}"] * bool(gone)
    measure = shown[0].measure
    panel = Panel(measure.label, measure.name, "share of settings and seeds", curves, bundles)
    return [panel], "; ".join(said)


def _ratios(board: Board) -> dict[str, Array]:
    """Return the error of each seed of each method as a multiple of the best method's mean error."""
    measure = board.measure
    top = measure.high if measure.sign > 0 else -measure.low
    if not math.isfinite(top):
        raise UserError(f"{measure.name} has no best possible value; a profile is of the errors beside one")
    errors = {line.method: top - np.array([*line.values.values()]) for line in board.ranked}
    best = min(
        (of.mean() for line in board.ranked if not line.lost for of in [errors[line.method]]), default=1.0
    )
    return {method: of / max(best, 1e-12) for method, of in errors.items()}


def _curve(method: str, ratios: Sequence[Array], factors: Array, shipped: bool) -> Curve:
    low, high = band(ratios, factors)
    points = pd.DataFrame({"x": factors, "mean": profile(ratios, factors), "low": low, "high": high})
    return Curve(method, points, shipped=shipped, seeds=min(map(len, ratios)))
