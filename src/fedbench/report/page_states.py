"""What can be said of one number of a table: a name, a symbol, a colour's class and a sentence for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fedbench.report import collect, logs
from fedbench.report.compare import Compared

NOISE, UNPRINTED = "within noise", "not printed"
TRAINING, UNFINISHED, ELSEWHERE = "in training", logs.UNFINISHED, "not in scale"


@dataclass(frozen=True)
class State:
    """One case: its name, its symbol (it has to be told without colour), the class of its colour, its meaning."""

    name: str
    symbol: str
    css: str
    meaning: str


STATES = {
    state.name: state
    for state in (
        State("matches", "≈", "match", "the difference is within the tolerance"),
        State(NOISE, "∼", "noise", "matches: the difference is larger, but the spread over seeds covers it"),
        State("better", "↑", "better", "better than published by more than tolerance and noise"),
        State("worse", "↓", "worse", "worse than published by more than tolerance and noise"),
        State(UNPRINTED, "○", "plain", "a result, and nothing printed to hold it against"),
        State(collect.DIVERGED, "✕", "diverged", "training left the finite numbers; recorded as a result"),
        State(collect.FAILED, "!", "failed", "the job ended with an error; its log says why"),
        State(TRAINING, "▸", "partial", "being trained while this page was made"),
        State(
            UNFINISHED, "…", "partial", "begun and cut off without an error; the next call goes on with it"
        ),
        State(collect.INCOMPLETE, "◐", "partial", "a part of the seeds is done; not compared before all are"),
        State(collect.UNDEFINED, "?", "partial", "the metric has no finite value"),
        State(collect.NOT_RUN, "–", "absent", "part of this scale, not trained yet"),
        State(ELSEWHERE, "·", "absent", "printed in the paper, not part of this scale"),
    )
}
"""In the order of legends and counts."""
TROUBLE = (collect.FAILED, collect.DIVERGED, UNFINISHED, TRAINING, collect.UNDEFINED, collect.INCOMPLETE)
"""What needs a reason, the most urgent first."""


def state_of(item: Compared, without: str = "") -> State:
    """Return the case of a number; ``without`` is what is known of a cell without results."""
    if not item.here:
        return STATES[ELSEWHERE]
    kind = item.verdict.kind
    if kind == "matches" and item.verdict.basis == "interval":
        kind = NOISE
    if kind == "no published value":
        kind = UNPRINTED
    return STATES[without if kind == collect.NOT_RUN and without else kind]


def counted(states: Iterable[State]) -> dict[str, int]:
    """Count the states, in the order of :data:`STATES`, those that occur."""
    counts = Counter(state.name for state in states)
    return {name: counts[name] for name in STATES if counts[name]}
