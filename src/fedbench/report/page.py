"""The report page: one HTML file with every table, figure, curve, configuration, failure and origin in it.

The template is plain Jinja2; styles, script, pictures and data are inside, so the file opens from disk, without a
server and without a network. The same results give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fedbench import progress
from fedbench.provenance import commit, package_version
from fedbench.report import collect
from fedbench.report.files import write
from fedbench.report.names import metric_label, target_name
from fedbench.report.page_cells import troubled
from fedbench.report.page_data import Chapter, chapters, tally
from fedbench.report.page_states import NOISE, STATES, TRAINING, UNFINISHED, UNPRINTED, counted
from fedbench.report.style import style_of
from fedbench.schema import Config

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
        """Say which cases make the count, where it joins several that occur."""
        found = [f"{counts[name]} {name}" for name in self.states if name in counts]
        return ", ".join(found) if len(found) > 1 else ""


CARDS = (
    Card("match", "match", ("matches", NOISE)),
    Card("off", "worse", ("better", "worse")),
    Card(UNPRINTED, "plain", (UNPRINTED,)),
    Card("diverged", "diverged", (collect.DIVERGED,)),
    Card("failed", "failed", (collect.FAILED,)),
    Card("in part", "partial", (TRAINING, UNFINISHED, collect.INCOMPLETE, collect.UNDEFINED)),
    Card("not run", "absent", (collect.NOT_RUN,)),
)


def build(config: Config, root: Path = Path(), target: Path = PAGE) -> Path:
    """Write the report of what is on disk and return its path; ``config`` says which paper and scale come first."""
    return write(root / target, render(chapters(config, root), config))


def render(shown: list[Chapter], config: Config) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("fedbench.report", "assets"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "duration": duration,
        "exact": exact,
        "short": short,
        "name": target_name,
        "metric": metric_label,
        "colour": lambda method: style_of(method).colour,
    }
    views = [view for chapter in shown for view in chapter.views]
    numbers = [(view, number) for view in views for number in view.numbers.values()]
    return environment.get_template("report.html").render(
        chapters=shown,
        numbers=numbers,
        views=views,
        troubled=troubled(views),
        cards=CARDS,
        counts=counted(number.state for _, number in numbers),
        states=STATES,
        config=config.model_dump(exclude_none=True),
        tally=tally,
        made_by=f"fedbench {package_version('fedbench')}, code {commit()}",
    )


def exact(value: float | None) -> str:
    """Return what a column is sorted by: the number in full, nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.17g}"


def duration(seconds: float) -> str:
    """Return a time for a reader, a dash where it is unknown."""
    return progress.duration(seconds) if math.isfinite(seconds) else "–"


def short(value: float | None) -> str:
    """Return a metric of one run."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.4f}"
