"""What can be said of one number of a table: a name, a symbol, a colour's class and a sentence for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from fedbench.report import verdict_words
from fedbench.results import collect
from fedbench.results.frame import DIVERGED, FAILED, INCOMPLETE, NOT_REACHED, NOT_RUN, UNDEFINED, Compared
from fedbench.results.verdicts import ABOVE, BELOW, BOUND, INCONCLUSIVE, MATCHES, NOT_PUBLISHED, ONE_SEED

TRAINING, UNFINISHED, ELSEWHERE = "in training", collect.UNFINISHED, "not in scale"
COLOURS = {MATCHES: "match", ABOVE: "above", BELOW: "below", INCONCLUSIVE: "open"}


class State(NamedTuple):
    """One case: its name, its symbol (it has to be told without colour), the class of its colour, its meaning."""

    name: str
    symbol: str
    css: str
    meaning: str


def _compared(verdict: str, css: str, basis: str = "") -> State:
    return State(
        verdict_words.name(verdict, basis),
        verdict_words.symbol(verdict, basis),
        css,
        verdict_words.MEANING[basis or verdict],
    )


STATES = {
    state.name: state
    for state in (
        *(_compared(kind, css) for kind, css in COLOURS.items()),
        *(_compared(kind, f"{css} one", ONE_SEED) for kind, css in COLOURS.items() if css != "open"),
        State(NOT_PUBLISHED, "○", "plain", verdict_words.MEANING[NOT_PUBLISHED]),
        State(BOUND, "○", "plain", verdict_words.MEANING[BOUND]),
        State(DIVERGED, "✕", "diverged", "training diverged (NaN or infinity)"),
        State(FAILED, "!", "failed", "the job ended with an error; its log says why"),
        State(TRAINING, "▸", "partial", "in training while this page was made"),
        State(UNFINISHED, "…", "partial", "interrupted; rerun to resume"),
        State(INCOMPLETE, "◐", "partial", "some of the seeds are done; compared when all are"),
        State(UNDEFINED, "∅", "partial", "the metric has no finite value"),
        State(NOT_REACHED, "∞", "partial", "the target was not reached within the run"),
        State(NOT_RUN, "–", "absent", "part of this scale, not run yet"),
        State(ELSEWHERE, "·", "absent", "published, but not part of this scale"),
    )
}
"""In the order of legends and counts."""
TROUBLE = (FAILED, DIVERGED, UNFINISHED, TRAINING, UNDEFINED, NOT_REACHED, INCOMPLETE)
"""What needs a reason, the most urgent first."""
NO_RESULT = (INCOMPLETE, FAILED, UNFINISHED, TRAINING, NOT_RUN, ELSEWHERE)
"""Cases in which a scale has no result yet, the nearest to one first."""


class Card(NamedTuple):
    """A headline: the cases it counts together, and the class of its colour."""

    name: str
    css: str
    states: tuple[str, ...]

    def of(self, counts: Mapping[str, int]) -> int:
        """Return how many of ``counts`` belong to it."""
        return sum(counts.get(name, 0) for name in self.states)


def _both(*kinds: str) -> tuple[str, ...]:
    """Name verdicts over several seeds and on one."""
    return tuple(verdict_words.name(kind, basis) for kind in kinds for basis in ("", ONE_SEED))


CARDS = (
    Card("match", "match", _both(MATCHES)),
    Card("differ", "below", _both(ABOVE, BELOW)),
    Card(INCONCLUSIVE, "open", (INCONCLUSIVE,)),
    Card(NOT_PUBLISHED, "plain", (NOT_PUBLISHED, BOUND)),
    Card("diverged", "diverged", (DIVERGED,)),
    Card("failed", "failed", (FAILED,)),
    Card("partly done", "partial", (TRAINING, UNFINISHED, INCOMPLETE, UNDEFINED, NOT_REACHED)),
    Card("not run", "absent", (NOT_RUN,)),
    Card(ELSEWHERE, "absent", (ELSEWHERE,)),
)


def state_of(item: Compared, without: str = "") -> State:
    """Return the case of a number of a table; ``without`` is what is known of a cell without results."""
    if not item.shown:
        return STATES[ELSEWHERE]
    kind = verdict_words.name(item.verdict, item.basis)
    return STATES[without if kind == NOT_RUN and without else kind]


def in_order(counts: Counter[str]) -> dict[str, int]:
    """Return what is counted by state in the order of :data:`STATES`, without zeros."""
    return {name: counts[name] for name in STATES if counts[name]}
