"""Which trial gets another seed and which one wins; the short runs that the trial in the lead must survive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fedbench.train.tune.trials import Rule, Trial, race

Scores = dict[float, tuple[float | None, ...]]
RACES: dict[str, tuple[Scores, float | None]] = {
    "best with one seed, best but for a divergence, never ahead": (
        {0.01: (0.99, 0.41), 0.1: (0.8, 0.9), 0.2: (0.7,), 0.5: (1.0, None)}, 0.1,
    ),
    "the lead changes with later seeds": (
        {0.01: (0.6,), 0.1: (0.8, 0.7), 0.2: (0.79, 0.78, 0.77), 0.5: (0.95, 0.4)}, 0.2,
    ),
    "a trial that diverges with a later seed is out": (
        {0.01: (0.6,), 0.1: (0.8, 0.7, 0.6), 0.2: (0.79, None), 0.5: (0.95, 0.4)}, 0.1,
    ),
    "ties go on together, and an easy seed is no lead": (
        {0.01: (0.8, 0.9), 0.1: (0.8, 0.95, 0.9), 0.2: (0.8, 0.9), 0.5: (0.7,)}, 0.1,
    ),
    "ahead on the seeds in common although behind in the mean": (
        {0.01: (0.8, 0.5, None), 0.1: (0.5, 0.5, 0.9), 0.2: (0.7, 0.3, 0.7), 0.5: (0.9, None)}, 0.1,
    ),
    "tied with the mean of the leader": ({0.01: (0.75, 0.25), 0.1: (0.5, 0.75), 0.2: (0.1,), 0.5: (0.1,)}, 0.1),
    "one seed: ties go to the earlier": ({0.01: (0.7,), 0.1: (0.9,), 0.2: (0.9,), 0.5: (0.8,)}, 0.1),
    "what diverges is behind 0": ({0.01: (0.0,), 0.1: (None,), 0.2: (None,), 0.5: (None,)}, 0.01),
    "where all diverge nothing is chosen": ({0.01: (None,), 0.1: (0.8, None), 0.2: (None,), 0.5: (0.7, None)}, None),
}  # fmt: skip
"""The validation score of each step size with the seeds that it gets, and the one that wins."""
RULE: dict[str, Any] = {
    "metric": "auc", "sign": 1, "short": frozenset(), "reach": None, "short_metric": "auc", "short_sign": 1,
}  # fmt: skip


def raced(scores: Scores, short: Scores | None = None, **judged: Any) -> float | None:
    """Race trials by the scores of the runs that they make, and no others; return the winner, None if all fail."""
    seeds = max(map(len, scores.values()))
    known = {f"{lr} {n}": score for lr, made in scores.items() for n, score in enumerate(made)}
    known |= {
        f"{lr} {seeds + n}": score for lr, made in (short or {}).items() for n, score in enumerate(made)
    }
    numbers = range(seeds + 3 * bool(short))
    trials: list[Any] = [({"lr": lr}, [SimpleNamespace(key=f"{lr} {n}") for n in numbers]) for lr in scores]
    apart = frozenset(f"{lr} {n}" for lr in scores for n in numbers[seeds:])
    rule, asked = Rule(**RULE | {"short": apart} | judged), dict[str, float | None]()
    while (standing := race([Trial(*trial) for trial in trials], rule, asked)).next:
        asked |= {run.key: known[run.key] for run in standing.next}
    assert asked == known
    return None if rule.mean(standing.runs[standing.best]) is None else [*scores][standing.best]


@pytest.mark.parametrize("case", RACES)
def test_who_leads_gets_another_seed_until_it_has_all(case: str) -> None:
    scores, best = RACES[case]
    assert raced(scores) == best


def test_of_a_metric_that_falls_the_lowest_score_wins() -> None:
    assert raced({0.01: (0.6,), 0.1: (0.3,), 0.2: (0.5,), 0.5: (0.7,)}, sign=-1) == 0.1


LEADS: Scores = {0.01: (0.7,), 0.1: (0.8,), 0.2: (0.9, 0.9), 0.5: (0.6,)}
NEXT: Scores = LEADS | {0.1: (0.8, 0.8)}
GOOD, BAD = (0.3, 0.301, 0.302), (0.3, None, 0.302)


@pytest.mark.parametrize(
    ("scores", "short", "judged", "best"),
    [
        (LEADS, {0.2: GOOD}, {}, 0.2),  # the leader alone, and their scores do not count
        (NEXT, {0.2: BAD, 0.1: GOOD}, {}, 0.1),
        (LEADS, {0.2: GOOD}, {"reach": 0.3}, 0.2),
        (NEXT, {0.2: GOOD, 0.1: (0.5, 0.5, 0.5)}, {"reach": 0.3005}, 0.1),
        (LEADS, {0.2: GOOD}, {"reach": 0.302, "short_sign": -1}, 0.2),  # for one that falls, the highest
        (NEXT, {0.2: GOOD, 0.1: (0.1, 0.1, 0.1)}, {"reach": 0.3015, "short_sign": -1}, 0.1),
    ],
)
def test_the_leader_must_survive_the_short_runs(
    scores: Scores, short: Scores, judged: dict[str, Any], best: float
) -> None:
    assert raced(scores, short, **judged) == best


def test_a_row_has_the_mean_and_the_scores_of_its_runs() -> None:
    rule = Rule(**RULE | {"short": frozenset({"s"}), "short_metric": "ap"})
    runs = {"a": 0.1, "b": 0.25, "s": 0.9}
    assert rule.row({"lr": 1}, runs) == {
        "lr": 1, "auc": 0.175, "runs": {"a": 0.1, "b": 0.25}, "short": {"s": 0.9},
    }  # fmt: skip
    assert "short" not in rule.row({}, {"a": 0.1}) and rule.mean(runs, 1) == 0.1
    assert rule.mean(runs | {"s": None}) is None and rule.mean({"a": 1 / 3}) == 0.33333
    assert (rule.metric_of("a"), rule.metric_of("s")) == ("auc", "ap")
