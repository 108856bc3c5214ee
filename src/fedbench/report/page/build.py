"""The report page: one HTML file with every table, figure, curve, configuration, failure and origin in it.

The template is plain Jinja2; styles, script, pictures and data are inside, so the file opens from disk, without a
server and without a network. The same results give the same bytes.
"""

from __future__ import annotations

import functools
import math
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fedbench import measures
from fedbench.jobs import progress
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.figures import claims as forest
from fedbench.report.figures.style import style_of
from fedbench.report.files import write
from fedbench.report.numbers.finding import AtScale
from fedbench.report.numbers.names import target_name
from fedbench.report.numbers.rows import DIVERGED, FAILED, INCOMPLETE, NOT_REACHED, NOT_RUN, UNDEFINED
from fedbench.report.numbers.verdicts import BOUND, NO_REFERENCE
from fedbench.report.page.cells import setting_text, troubled
from fedbench.report.page.curves import ASSETS
from fedbench.report.page.data import Chapter, chapters, studies
from fedbench.report.page.pictures import Picture, address, picture
from fedbench.report.page.states import STATES, TRAINING, UNFINISHED, counted
from fedbench.report.tables.claim_words import effect_text, seeds_text
from fedbench.results.claims.judge import CONTRADICTED, SUPPORTED, UNSUPPORTED
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
        found = [name for name in self.states if name in counts]
        said = found in ([self.name], [MATCHES])
        words = {name: name.replace(MATCHES, "match") for name in found}
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
    Card(
        "partly done",
        "partial",
        (TRAINING, UNFINISHED, INCOMPLETE, UNDEFINED, NOT_REACHED),
    ),
    Card("not run", "absent", (NOT_RUN,)),
)


def build(config: Config) -> Path:
    """Write the report of what is on disk and return its path; ``config`` says which paper and scale come first."""
    return write(PAGE, render(gathered(config), config))


Gathered = tuple[list[Chapter], Picture | None]
"""The chapters of a study, and its claims drawn where it makes some."""


def gathered(config: Config) -> list[Gathered]:
    """Gather what there is to show, several studies each in a process of its own."""
    shown = studies(config)
    gather = functools.partial(_gather, config)
    if len(shown) == 1:
        return [*map(gather, shown, shown.values())]
    Plan(config).cells()  # what is wrong with the call is said now, not when the other studies are done
    # an interrupt ends the others without a word: this one reports it
    quiet = (signal.SIGINT, signal.SIG_DFL)
    count = min(len(shown), os.cpu_count() or 1)
    with ProcessPoolExecutor(count, initializer=signal.signal, initargs=quiet) as pool:
        return [*pool.map(gather, shown, shown.values())]


def _gather(config: Config, study: str, scales: list[str]) -> Gathered:
    of_study = chapters(config, study, scales)
    claims = of_study[0].claims
    return of_study, picture(forest.draw(claims).picture) if claims else None


def render(studies_: list[Gathered], config: Config) -> str:
    """Return the page as HTML."""
    shown = [chapter for of_study, _ in studies_ for chapter in of_study]
    environment = ASSETS.overlay()
    environment.filters |= {
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
    views = [view for chapter in shown for view in chapter.views if view.shown]
    numbers = [(chapter, row) for chapter in shown for row in chapter.numbers]
    counts = counted(number.state for _, (_, number) in numbers)
    return environment.get_template("report.html").render(
        chapters=shown,
        forests={of_study[0].paper.key: drawn for of_study, drawn in studies_},
        numbers=numbers,
        views=views,
        troubled=troubled(views),
        cards=CARDS,
        columns=[card for card in CARDS if card.of(counts)],
        counts=counts,
        counted=lambda rows: counted(number.state for _, number in rows),
        states=STATES,
        config=config.model_dump(exclude_none=True),
        made_by=f"fedbench {package_version('fedbench')}, code {commit()}",
    )


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
