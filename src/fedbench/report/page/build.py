"""The report page: one HTML file with every table, figure, curve, configuration, failure and origin in it.

The template is plain Jinja2; styles, script, pictures and data are inside, so the file opens from disk, without a
server and without a network. The same results give the same bytes.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.files import write
from fedbench.report.numbers.rows import DIVERGED, FAILED, INCOMPLETE, NOT_REACHED, NOT_RUN, UNDEFINED
from fedbench.report.numbers.verdicts import BOUND, NO_REFERENCE
from fedbench.report.page.data import chapters, studies
from fedbench.report.page.states import STATES, TRAINING, TROUBLE, UNFINISHED, in_order
from fedbench.report.page.text import TEMPLATES, ChapterText, text_of
from fedbench.report.processes import at_once
from fedbench.results.print_verdicts import ABOVE, BELOW, INCONCLUSIVE, MATCHES, ONE_SEED
from fedbench.store.provenance import commit, package_version

PAGE = Path("report.html")


@dataclass(frozen=True)
class Card:
    """A headline: the cases it counts together, and the class of its colour."""

    name: str
    css: str
    states: tuple[str, ...]

    def of(self, counts: Mapping[str, int]) -> int:
        """Return how many of ``counts`` belong to it."""
        return sum(counts.get(name, 0) for name in self.states)

    def detail(self, counts: Mapping[str, int]) -> str:
        """Say which cases make the count, unless its name says so."""
        present = [name for name in self.states if name in counts]
        said = present in ([self.name], [MATCHES])
        words = {name: name.replace(MATCHES, "match") for name in present}
        return "" if said else ", ".join(f"{counts[name]} {word}" for name, word in words.items())


def _both(*kinds: str) -> tuple[str, ...]:
    """Name verdicts over several seeds and on one."""
    return tuple(f"{kind}{one}" for kind in kinds for one in ("", f" ({ONE_SEED})"))


CARDS = (
    Card("match", "match", _both(MATCHES)),
    Card("differ", "below", _both(ABOVE, BELOW)),
    Card(INCONCLUSIVE, "open", (INCONCLUSIVE,)),
    Card(NO_REFERENCE, "plain", (NO_REFERENCE, BOUND)),
    Card("diverged", "diverged", (DIVERGED,)),
    Card("failed", "failed", (FAILED,)),
    Card("partly done", "partial", (TRAINING, UNFINISHED, INCOMPLETE, UNDEFINED, NOT_REACHED)),
    Card("not run", "absent", (NOT_RUN,)),
)


def build(config: Config) -> Path:
    """Write the report of what is on disk and return its path; ``config`` says which paper and scale come first."""
    return write(PAGE, render(gathered(config), config))


def gathered(config: Config) -> list[ChapterText]:
    """Return the chapters that there are to show; several studies are made at a time, each by a process of its own."""
    shown = studies(config)
    if len(shown) > 1:
        Plan(config).cells()  # what is wrong with the call is said now, not when the other studies are done
    return [*itertools.chain.from_iterable(at_once(functools.partial(texts_of, config), shown.items()))]


def texts_of(config: Config, study: tuple[str, list[str]]) -> list[ChapterText]:
    """Return the chapters of a study, given with its scales."""
    return [*map(text_of, chapters(config, *study))]


def render(chapters_: Sequence[ChapterText], config: Config) -> str:
    """Return the page as HTML."""
    counts = in_order(sum((chapter.counts for chapter in chapters_), Counter()))
    by_state = {
        name: [case for chapter in chapters_ for case in chapter.troubled.get(name, ())] for name in TROUBLE
    }
    return TEMPLATES.get_template("report.html").render(
        chapters=chapters_,
        troubled={name: cases for name, cases in by_state.items() if cases},
        cards=CARDS,
        columns=[card for card in CARDS if card.of(counts)],
        counts=counts,
        states=STATES,
        config=config.model_dump(exclude_none=True),
        made_by=f"fedbench {package_version('fedbench')}, code {commit()}",
    )
