"""What print and every scale say of a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedbench.metric_table import Measure
from fedbench.results.claims.judge import (
    FEWEST,
    LOST,
    NOT_RUN,
    NOT_TESTABLE,
    NOT_TESTED,
    OPEN,
    UNDECIDED,
    WON,
    Verdict,
)
from fedbench.results.claims.rules import Rule
from fedbench.results.places import Place
from fedbench.study.claims import ClaimSpec

SCALES = ("reduced", "paper")
"""In the order in which they come nearer to the paper; others come before."""
STAND_IN = "stand-in"
EARLY = "curves still move"
"""Why a scale that trains for less time than the paper has no verdict."""


@dataclass(frozen=True)
class Tally:
    """At how many places the numbers show what is claimed."""

    won: int
    places: int

    def __str__(self) -> str:
        """As in a table."""
        return f"{self.won} of {self.places}" if self.places else "–"


@dataclass(frozen=True)
class AtScale:
    """What one scale says of a claim.

    Attributes:
        scale: its name.
        verdict: what the numbers say; of a stand-in no verdict on the paper.
        places: where they were read, in the order of ``verdict.places``.
        total: how many places the claim is about.
        stand_in: the datasets that stand in for the paper's, none where those ran.
        shipped: whether some of it came with the repository.
        keys: of the cells that were looked at.
        commits: of the code that made them.
        early: whether there is no verdict because it would lean another way if training had gone on.
        waiting: at how many further places fewer seeds ran than a verdict needs.
        unproven: whether it is a verdict of trainings that may be too short, as far as it is known; exponents and
            ratios of costs are no ends of curves.
        ours: the datasets of ours that a claim is about.
        q: of the verdict's p-value among all claims of the paper at this scale; NaN where it is contradicted, since p
            is that of "not supported".
        against: the rival over which the deciding effect is, empty without a choice.
        diverged: the runs that diverged, and what they count as.
    """

    scale: str
    verdict: Verdict
    places: list[Place]
    total: int
    stand_in: tuple[str, ...] = ()
    shipped: bool = False
    keys: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    early: bool = False
    waiting: int = 0
    unproven: bool = False
    ours: tuple[str, ...] = ()
    q: float = math.nan
    against: str = ""
    diverged: tuple[str, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether there is anything to look at."""
        return self.verdict.kind != NOT_RUN

    @property
    def kind(self) -> str:
        """The verdict, ``stand-in`` where there is none because other data ran than the paper's."""
        return STAND_IN if self.stand_in else self.verdict.kind

    @property
    def tally(self) -> Tally:
        """At how many of the places that ran the means show it; of an average, whether it does."""
        return Tally(self.verdict.shown, self.verdict.asked)

    @property
    def deciding_place(self) -> Place | None:
        """Where the deciding effect is, None for all places together."""
        return None if self.verdict.at is None else self.places[self.verdict.at]

    @property
    def words(self) -> str:
        """The verdict with its coverage, as a table has it."""
        more = f"; left out: {self.waiting} with fewer than {FEWEST} seeds" if self.waiting else ""
        return self._words + more

    @property
    def _words(self) -> str:
        if not self.ran:
            return NOT_RUN
        if self.stand_in:
            return f"{', '.join(self.stand_in)}, no verdict: shown in {self.tally}"
        on_own_data = f" on {', '.join(self.ours)}" if self.ours else ""
        early = f", {EARLY}" * self.early
        kind = f"{self.verdict.kind}{on_own_data}{early}"
        if self.verdict.kind == NOT_TESTED:
            return f"{kind}: means show it in {self.tally}"
        if self.verdict.kind == NOT_TESTABLE:
            return f"{kind}: its condition holds in none of {self.tally.places} settings"
        if self.total == 1:
            return kind
        counts = ", ".join(f"{word} {self.verdict.count(word)}" for word in (WON, LOST, OPEN))
        agree = f"means agree in {self.tally.won}"
        if self.verdict.at is None and self.ran:
            agree = "the average agrees" if self.tally.won else "the average does not agree"
        means = f"; {agree}" if self.verdict.kind == UNDECIDED else ""
        return f"{kind}: {counts} of {self.total}{means}"


@dataclass(frozen=True)
class Finding:
    """A claim with what print and scales say of it; ``number`` counts the paper's claims from 1."""

    number: int
    claim: ClaimSpec
    measure: Measure
    rule: Rule
    printed: Tally
    scales: list[AtScale]

    @property
    def main(self) -> AtScale:
        """The scale nearest to the paper of those with enough seeds of the paper's data for a verdict.

        Without any, of those with runs of its data, then of those with runs.
        """
        ran = [one for one in self.scales if one.ran]
        on_paper_data = [one for one in ran if not one.stand_in]
        enough = [one for one in on_paper_data if one.verdict.seeds >= FEWEST]
        return (enough or on_paper_data or ran or self.scales)[-1]
