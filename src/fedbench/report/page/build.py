"""The report page: one HTML file with every table, figure, curve, configuration, failure and origin in it.

The templates are plain Jinja2; styles, script, pictures and data are inside, so the file opens from disk, without a
server and without a network. The same results give the same bytes.
"""

from __future__ import annotations

import base64
import functools
import gzip
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fedbench import __version__, files
from fedbench.report.claims import effect_text, seeds_text
from fedbench.report.page.curves import picture
from fedbench.report.page.gather import chapters, studies
from fedbench.report.page.states import CARDS, ELSEWHERE, NO_RESULT, STATES, TROUBLE, in_order
from fedbench.report.page.view import Chapter, Number
from fedbench.report.processes import at_once
from fedbench.results.claims.findings import AtScale
from fedbench.results.claims.judge import CONTRADICTED, SUPPORTED, UNSUPPORTED
from fedbench.results.names import target_name
from fedbench.results.shipped import from_paper
from fedbench.store.provenance import commit
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train import progress

PAGE = Path("report.html")


@dataclass(frozen=True)
class ChapterText:
    """A chapter as text, made in the process that gathered it, so that little goes from one to the other.

    ``html`` is the chapter, ``overview`` and ``rows`` its parts of the overview and of the list of all numbers,
    ``troubled`` its cells that are not finished, by case. ``counts`` are its numbers by case, ``published`` the
    published ones, each at one scale of the study.
    """

    study: str
    title: str
    scale: str
    anchor: str
    counts: Counter[str]
    published: Counter[str]
    troubled: dict[str, list[Markup]]
    has_claims: bool
    html: Markup
    overview: Markup
    rows: Markup


def save_page(config: Config) -> Path:
    """Write the report of what is on disk and return its path; ``config`` says which paper and scale come first."""
    return files.write(PAGE, render(gathered(config), config))


def gathered(config: Config) -> list[ChapterText]:
    """Return the chapters that there are to show; several studies are made at a time, each by a process of its own."""
    shown = studies(config)
    if len(shown) > 1:
        Plan(config).cells()  # what is wrong with the call is said now, not when the other studies are done
    return [*itertools.chain.from_iterable(at_once(functools.partial(texts_of, config), shown.items()))]


def texts_of(config: Config, study: tuple[str, list[str]]) -> list[ChapterText]:
    """Return the chapters of a study, given with its scales."""
    made = chapters(config, *study)
    best = best_scales(made)
    return [text_of(chapter, [number for at, number in best if at is chapter]) for chapter in made]


def best_scales(made: Sequence[Chapter]) -> list[tuple[Chapter, Number]]:
    """Return each published number of a study once: at the scale nearest to the paper that has a result of it."""
    best: dict[object, tuple[Chapter, Number]] = {}
    for chapter in made:
        for key, number in chapter.numbers.items():
            if number.item.has_print and chapter.paper.targets[number.target].kind != "rates":
                best[key] = min(best.get(key, (chapter, number)), (chapter, number), key=_distance)
    return [*best.values()]


def _distance(of: tuple[Chapter, Number]) -> tuple[int, int]:
    """Tell how far a number is from being the paper's result: what it lacks, then its scale."""
    state = of[1].counts_as
    return NO_RESULT.index(state) + 1 if state in NO_RESULT else 0, from_paper(of[0].scale.name)


def text_of(chapter: Chapter, published: Sequence[Number]) -> ChapterText:
    """Write a chapter; some of its published numbers count."""
    once = {number.key for number in published}
    macros = vars(
        TEMPLATES.get_template("chapter.html").make_module({"chapter": chapter, "once": once, "cards": CARDS})
    )
    return ChapterText(
        chapter.paper.key,
        chapter.paper.title,
        chapter.scale.name,
        chapter.anchor,
        sum((Counter(chapter.states(name)) for name in chapter.paper.targets), Counter[str]()),
        Counter(number.counts_as for number in published),
        {name: [macros["case"](view) for view in views] for name, views in chapter.troubled().items()},
        chapter.claims is not None,
        macros["content"](),
        macros["overview"](),
        macros["rows"](),
    )


def render(made: Sequence[ChapterText], config: Config) -> str:
    """Return the page as HTML."""
    counts = sum((chapter.counts for chapter in made), Counter[str]())
    published = sum((chapter.published for chapter in made), Counter[str]())
    troubled = {name: [c for chapter in made for c in chapter.troubled.get(name, ())] for name in TROUBLE}
    return TEMPLATES.get_template("report.html").render(
        chapters=made,
        troubled={name: cases for name, cases in troubled.items() if cases},
        cards=CARDS,
        published=in_order(published),
        counts={name: count for name, count in in_order(counts).items() if name != ELSEWHERE},
        states=STATES,
        config=config.model_dump(exclude_none=True),
        made_by=f"fedbench {__version__}, code {commit()}",
    )


def colour_of_claim(at: AtScale) -> str:
    """Return the class of a verdict's colour; what decides nothing is grey."""
    if at.stand_in or not at.ran:
        return "absent"
    return {SUPPORTED: "match", CONTRADICTED: "below", UNSUPPORTED: "below"}.get(at.verdict.kind, "plain")


def exact(value: float | None, form: str = ".9g") -> str:
    """Return a number in full, as a column is sorted by, or in another form; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:{form}}"


def duration(seconds: float | None) -> str:
    """Return a time for a reader, a dash where it is unknown."""
    return "–" if seconds is None or not math.isfinite(seconds) else progress.duration(seconds)


def packed(text: str) -> str:
    """Return a file's text as a data address, compressed; the page's script unpacks it when it is saved."""
    return f"data:application/gzip;base64,{base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()}"


TEMPLATES = Environment(
    loader=PackageLoader("fedbench.report.page", "assets"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
TEMPLATES.filters |= {
    "duration": duration,
    "exact": exact,
    "name": target_name,
    "colour_of_claim": colour_of_claim,
    "effect": effect_text,
    "seeds": seeds_text,
    "packed": packed,
    "picture": picture,
}
