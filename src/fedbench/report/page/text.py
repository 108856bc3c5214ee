"""A chapter of the page as text, made in the process that gathered it: so that little goes from one to the other."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from markupsafe import Markup

from fedbench import measures
from fedbench.jobs import progress
from fedbench.report.figures.style import style_of
from fedbench.report.numbers.finding import AtScale
from fedbench.report.numbers.names import target_name
from fedbench.report.page.cells import setting_text, troubled
from fedbench.report.page.curves import ASSETS
from fedbench.report.page.data import Chapter
from fedbench.report.page.pictures import address, picture
from fedbench.report.page.states import counted
from fedbench.report.tables.claim_words import effect_text, seeds_text
from fedbench.results.claims.judge import CONTRADICTED, SUPPORTED, UNSUPPORTED

PARTS = ("content", "claims", "numbers", "provenance", "cells")
"""Parts of the page that a chapter has a share of, each a macro of ``chapter.html``."""


@dataclass(frozen=True)
class Row:
    """A row of the overview: a table, or the figures of a chapter where its name is empty, and its numbers by case."""

    table: str
    shipped: int
    states: dict[str, int]


@dataclass(frozen=True)
class Case:
    """A cell that is not finished, and why."""

    anchor: str
    name: str
    scale: str
    reason: Markup


@dataclass(frozen=True)
class ChapterText:
    """A chapter: ``html`` has its share of each of :data:`PARTS`, the rest is what the head of the page says of it."""

    study: str
    title: str
    scale: str
    anchor: str
    overview: list[Row]
    counts: Counter[str]
    troubled: dict[str, list[Case]]
    html: dict[str, Markup]


def text_of(chapter: Chapter) -> ChapterText:
    """Write a chapter."""
    macros = vars(TEMPLATES.get_template("chapter.html").make_module({"chapter": chapter}))
    reason = vars(TEMPLATES.get_template("cell.html").make_module())["reason"]
    return ChapterText(
        chapter.paper.key,
        chapter.paper.title,
        chapter.scale.name,
        chapter.anchor,
        overview_of(chapter),
        Counter(number.state.name for _, number in chapter.numbers),
        {
            name: [Case(view.anchor, view.cell.name, view.cell.scale, reason(view)) for view in views]
            for name, views in troubled(chapter.shown).items()
        },
        {part: macros[part]() for part in PARTS},
    )


def overview_of(chapter: Chapter) -> list[Row]:
    """Return the rows of the overview: a table each, then what figures alone show."""
    rows = [Row(shown.table.name, shown.shipped, shown.states) for shown in chapter.tables if shown.entries]
    drawn = counted(number.state for _, number in chapter.drawn)
    return [*rows, *([Row("", 0, drawn)] if drawn else [])]


def colour_of_claim(at: AtScale) -> str:
    """Return the class of a verdict's colour; what decides nothing is grey."""
    if at.stand_in or not at.ran:
        return "absent"
    return {SUPPORTED: "match", CONTRADICTED: "below", UNSUPPORTED: "below"}.get(at.verdict.kind, "plain")


def exact(value: float | None) -> str:
    """Return what a column is sorted by: the number in full, nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.17g}"


def duration(seconds: float) -> str:
    """Return a time for a reader, a dash where it is unknown."""
    return progress.duration(seconds) if math.isfinite(seconds) else "–"


def short(value: float | None) -> str:
    """Return a metric of one run."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.4f}"


TEMPLATES = ASSETS.overlay()
"""Those of the page, with what they call."""
TEMPLATES.filters = ASSETS.filters | {
    "duration": duration,
    "exact": exact,
    "short": short,
    "setting": lambda item, paper: setting_text(
        paper, {name: value for name, value in item.at.items() if name in paper.settings}
    ),
    "name": target_name,
    "metric": measures.label,
    "colour_of_claim": colour_of_claim,
    "effect": effect_text,
    "seeds": seeds_text,
    "address": lambda text: address("text/csv", text.encode()),
    "picture": picture,
    "colour": lambda method: style_of(method).colour,
}
