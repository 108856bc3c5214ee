"""A paper's sentences held against the numbers: supported or not, in how many places, in print and here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fedbench.report import stats
from fedbench.report.compare import Compared, rivals
from fedbench.schema import ClaimSpec


@dataclass(frozen=True)
class Tally:
    """In how many places a claim could be looked at, and in how many of those it held."""

    held: int
    places: int


@dataclass(frozen=True)
class Finding:
    """What the numbers say of one claim: in the print, in ours, and how many places ours leaves open."""

    text: str
    printed: Tally
    ours: Tally
    open: int

    @property
    def verdict(self) -> str:
        """``supported`` if it held wherever we could look, ``not run`` if nowhere, else ``not supported``."""
        if not self.ours.places:
            return "not run"
        return "supported" if self.ours.held == self.ours.places else "not supported"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for a provenance file."""
        return {**asdict(self), "verdict": self.verdict}

    def __str__(self) -> str:
        """One line for below a table."""
        left = f", {self.open} not run" if self.open else ""
        ours = f"ours: {self.ours.held} of {self.ours.places}{left}" if self.ours.places else "ours: not run"
        printed = f"in print: {self.printed.held} of {self.printed.places}; " if self.printed.places else ""
        return f"Claim “{self.text}”: {self.verdict} ({printed}{ours})."


def check(claim: ClaimSpec, compared: Sequence[Compared], decimals: int) -> Finding:
    """Hold one claim against a table: in every place each ``method`` is at least as good as each of ``over``.

    A place is one dataset and setting. It counts as looked at when all methods named have a mean there, and
    the claim holds with equality at ``decimals`` digits, which is how the papers print their ties.
    """
    sign = 1 if stats.higher_is_better(claim.metric) else -1
    tallies = []
    groups = [group for group in rivals(compared) if group[0].metric == claim.metric]
    for attribute in ("printed", "mean"):
        held = places = 0
        for group in groups:
            values = {
                item.place["method"]: sign * round(getattr(item, attribute), decimals) for item in group
            }
            named = [[values.get(name, math.nan) for name in names] for names in (claim.method, claim.over)]
            if all(math.isfinite(value) for side in named for value in side):
                places += 1
                held += min(named[0]) >= max(named[1])
        tallies.append(Tally(held, places))
    printed, ours = tallies
    return Finding(claim.text, printed, ours, open=len(groups) - ours.places)
