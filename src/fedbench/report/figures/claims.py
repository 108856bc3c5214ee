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

from fedbench.plan.schema import Paper
from fedbench.report.figures.build import FORMATS
from fedbench.report.figures.forest import draw_rows
from fedbench.report.figures.plot import render
from fedbench.report.figures.style import BLUE, GREEN, GREY, RC, RED
from fedbench.report.files import FIGURES, csv_text, write_forms
from fedbench.report.numbers.finding import Finding
from fedbench.report.tables.claim_words import place_text
from fedbench.report.tables.claims import NAME, ClaimTable
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


def save(table: ClaimTable) -> list[Path]:
    """Write ``figures/<paper>/claims.{pdf,svg,png,csv}`` and return the paths, the PDF first."""
    return write_forms(FIGURES / table.paper.key / NAME, draw(table).forms())


def draw(table: ClaimTable) -> Forest:
    """Draw the claims that ran, each at the scale that its effect is shown of."""
    ran = [one for one in table.findings if one.main.ran]
    effects = [_effects(one, table.paper) for one in ran]
    with matplotlib.rc_context(RC):
        picture = _figure(ran, effects)
    points = pd.concat(effects, ignore_index=True) if ran else pd.DataFrame()
    return Forest(table.paper.key, picture, points)


def _figure(ran: Sequence[Finding], effects: Sequence[pd.DataFrame]) -> Figure:
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
            _panel(axes, ran[i], effects[i], box[2])
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


def _panel(axes: Axes, finding: Finding, effects: pd.DataFrame, width: float) -> None:
    at = finding.main
    colour = GREY if at.stand_in else COLOURS.get(at.verdict.kind, BLUE)
    *places, _ = effects.index
    shown = places[:MOST]
    more = [f"and {len(places) - MOST} more"] if len(places) > MOST else []
    labels = [*effects.loc[shown, "place"], *more, "whole" if finding.rule.holds != "some" else "best"]
    marks = effects.loc[[*shown, len(places)]].rename(columns={"effect": "mean"})
    marks = marks.assign(
        row=[*range(len(shown)), len(labels) - 1], colour=colour,
        marker=[*"o" * len(shown), "D"], size=[*[3.0] * len(shown), 5.0],
    )  # fmt: skip
    axes.tick_params(axis="y", labelsize=6.5)
    axes.locator_params(axis="x", nbins=4)
    draw_rows(axes, marks, labels)
    low, high = axes.get_xlim()
    band = finding.rule.margin if finding.rule.form in ("no_worse", "equal") else finding.rule.matters
    if band:
        axes.axvspan(-band, band, color="#e4e4e4", zorder=0, linewidth=0)
    axes.axvline(0, color="#444444", linewidth=0.6)
    if finding.rule.margin and finding.rule.form not in ("no_worse", "equal"):
        axes.axvline(finding.rule.margin, color="#444444", linewidth=0.6, linestyle=(0, (3, 2)))
        high = max(high, finding.rule.margin * 1.1)
    room = max(1.5 * band, 0.05 * (high - low))
    axes.set_xlim(min(low, -room), max(high, room))
    axes.yaxis.get_major_ticks()[-1].label1.set_fontweight("bold")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_label_coords(0, 0)  # of no label: without a place it would have all ticks laid out twice
    says = f"{finding.number}. {finding.claim.says}"
    unit = " (logarithm of the ratio)" if finding.claim.ratio else ""
    title = f"{_cut(says, round(18 * (width + LABELS)))}\n{at.scale}: {at.words}{unit}"
    axes.set_title(title, fontsize=7.2, loc="left", x=(0.06 - LABELS) / width, y=1)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _effects(finding: Finding, paper: Paper) -> pd.DataFrame:
    """Return the effects of a claim, a row for each place and a last one for all of them; intervals take two seeds."""
    at, of_claim = finding.main, {"paper": paper.key, "claim": finding.number, "scale": finding.main.scale}
    rows: list[dict[str, Any]] = []
    for place, effect in [*zip(at.places, at.verdict.places, strict=True), (None, at.verdict.overall)]:
        where = {"place": place_text(paper, place, at.places), **dict(place)} if place else {"place": "whole"}
        low, high = (effect.low, effect.high) if effect.seeds > 1 else (math.nan, math.nan)
        numbers = {"effect": effect.mean, "low": low, "high": high, "seeds": effect.seeds}
        rows.append(of_claim | where | numbers)
    return pd.DataFrame(rows)
