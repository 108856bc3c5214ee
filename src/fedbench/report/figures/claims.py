"""A paper's claims as a forest plot: a row for each place with its interval, a diamond for the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper
from fedbench.report.figures.build import FORMATS
from fedbench.report.figures.plot import render
from fedbench.report.figures.style import BLUE, GREEN, GREY, RC, RED
from fedbench.report.files import FIGURES, csv_text, write_forms
from fedbench.report.numbers.finding import Finding
from fedbench.report.tables.claim_words import place_text
from fedbench.report.tables.claims import NAME, ClaimTable, make
from fedbench.results.claims.effect import Effect
from fedbench.results.claims.judge import CONTRADICTED, SUPPORTED, UNSUPPORTED

ROW, HEAD, FOOT, LABELS = 0.16, 0.66, 0.35, 1.9
"""Inches: a place, the rest of a claim's panel, the words below all, the names of places."""
WIDE, NARROW, TALL = 6.5, 4.5, 9.0
"""Inches: the one column of a figure; each of two, when one would be taller than this."""
MOST = 12
"""Places of a claim that are drawn; the CSV has all."""
COLOURS = {SUPPORTED: GREEN, CONTRADICTED: RED, UNSUPPORTED: RED}


@dataclass(frozen=True)
class Forest:
    """The picture, and the points drawn."""

    paper: str
    picture: Figure
    points: pd.DataFrame

    def forms(self) -> dict[str, str | bytes]:
        """Return what is written, by suffix."""
        return {**{kind: render(self.picture, kind) for kind in FORMATS}, "csv": csv_text(self.points)}


def build(plan: Plan) -> list[Path]:
    """Write ``figures/<paper>/claims.{pdf,svg,png,csv}`` and return the paths, the PDF first."""
    return save(make(plan))


def save(table: ClaimTable) -> list[Path]:
    """Write the picture of a table that was made already."""
    return write_forms(FIGURES / table.paper.key / NAME, draw(table).forms())


def draw(table: ClaimTable) -> Forest:
    """Draw the claims that ran, each at the scale that its effect is shown of."""
    ran = [one for one in table.findings if one.main.ran]
    with matplotlib.rc_context(RC):
        picture = _figure(ran, table.paper)
    return Forest(table.paper.key, picture, _points(table.paper, ran))


def _figure(ran: Sequence[Finding], paper: Paper) -> Figure:
    heights = [HEAD + ROW * (min(len(one.main.places), MOST + 1) + 1) for one in ran]
    columns = 1 if sum(heights) <= TALL else 2
    width = WIDE if columns == 1 else NARROW
    split = next((i for i in range(1, len(ran)) if sum(heights[:i]) >= sum(heights) / columns), len(ran))
    parts = [range(split), range(split, len(ran))][:columns] if columns > 1 else [range(len(ran))]
    total = max((sum(heights[i] for i in part) for part in parts), default=0) + FOOT + 0.3 * (not ran)
    figure = Figure(figsize=(columns * width, total))
    for column, part in enumerate(parts):
        top = total - 0.02
        for i in part:
            box = (column * width + LABELS, top - heights[i] + 0.28, width - LABELS - 0.15, heights[i] - HEAD)
            axes = figure.add_axes(tuple(np.divide(box, (columns * width, total) * 2)))
            _panel(axes, ran[i], paper, box[2])
            top -= heights[i]
    words = _legend(ran) if ran else "Nothing that the claims are about has been run yet."
    figure.text(0.01, 0.04 / total, words, fontsize=6.5, color="#555555", va="bottom")
    return figure


def _legend(ran: Sequence[Finding]) -> str:
    colours = (
        "Green: supported; red: contradicted or not supported; blue: undecided; grey: a stand-in, no verdict."
    )
    if all(one.main.stand_in for one in ran):
        colours = "Grey: a stand-in, no verdict."
    dots = "Dots: places; diamond: all places; 90 % intervals from two seeds on."
    return f"{dots} Grey band: what does not matter, or the margin.\n{colours}"


def _panel(axes: Axes, one: Finding, paper: Paper, width: float) -> None:
    at = one.main
    colour = GREY if at.stand_in else COLOURS.get(at.verdict.kind, BLUE)
    drawn = list(zip(at.places, at.verdict.places, strict=True))[:MOST]
    labels = [place_text(paper, place, at.places) for place, _ in drawn]
    for row, (_, effect) in enumerate(drawn):
        _mark(axes, effect, row, colour, "o", 3.0)
    if len(at.places) > MOST:
        labels.append(f"and {len(at.places) - MOST} more")
    _mark(axes, at.verdict.whole, len(labels), colour, "D", 5.0)
    labels.append("whole" if one.rule.holds != "some" else "best")
    low, high = axes.get_xlim()
    band = one.rule.margin if one.rule.form in ("no_worse", "equal") else one.rule.matters
    if band:
        axes.axvspan(-band, band, color="#e4e4e4", zorder=0, linewidth=0)
    axes.axvline(0, color="#444444", linewidth=0.6)
    if one.rule.margin and one.rule.form not in ("no_worse", "equal"):
        axes.axvline(one.rule.margin, color="#444444", linewidth=0.6, linestyle=(0, (3, 2)))
        high = max(high, one.rule.margin * 1.1)
    room = max(1.5 * band, 0.05 * (high - low))
    axes.set_xlim(min(low, -room), max(high, room))
    axes.locator_params(axis="x", nbins=4)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), labels, fontsize=6.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for text in axes.get_yticklabels()[-1:]:
        text.set_fontweight("bold")
    says = f"{one.number}. {one.claim.says}"
    title = f"{_cut(says, round(18 * (width + LABELS)))}\n{at.scale}: {at.words}{_unit(one)}"
    axes.set_title(title, fontsize=7.2, loc="left", x=(0.06 - LABELS) / width)


def _mark(axes: Axes, effect: Effect, row: int, colour: str, marker: str, size: float) -> None:
    if not math.isfinite(effect.mean):
        return
    if math.isfinite(effect.low) and math.isfinite(effect.high):
        axes.plot([effect.low, effect.high], [row, row], color=colour, linewidth=1.0, solid_capstyle="butt")
    axes.plot([effect.mean], [row], marker, color=colour, markersize=size, markeredgewidth=0)


def _unit(one: Finding) -> str:
    return " (logarithm of the ratio)" if one.claim.ratio else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _points(paper: Paper, ran: Sequence[Finding]) -> pd.DataFrame:
    """Return what is drawn, a row for each place of a claim and one for all of them."""
    rows: list[dict[str, Any]] = []
    for one in ran:
        at, of_claim = one.main, {"paper": paper.key, "claim": one.number, "scale": one.main.scale}
        effects = [*zip(at.places, at.verdict.places, strict=True), (None, at.verdict.whole)]
        for place, effect in effects:
            where = (
                {"place": place_text(paper, place, at.places), **dict(place)} if place else {"place": "whole"}
            )
            low, high = (effect.low, effect.high) if effect.seeds > 1 else (math.nan, math.nan)
            numbers = {"effect": effect.mean, "low": low, "high": high, "seeds": effect.seeds}
            rows.append(of_claim | where | numbers)
    return pd.DataFrame(rows)
