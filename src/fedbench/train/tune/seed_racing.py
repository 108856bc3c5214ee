"""The race of a method's trials: which of them get another seed, and which one wins."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedbench.spec import RunSpec

Runs = Mapping[str, float | None]
"""Scores of runs by their keys in the store, None where one diverged."""


class Trial(NamedTuple):
    """The values that a trial tries, and its runs, which differ in their seed; the short ones come last."""

    params: dict[str, Any]
    runs: list[RunSpec]


class Standing(NamedTuple):
    """Where a race is: the scores of each trial's runs, the place of the leader, and the runs that come next.

    The race has ended when none does.
    """

    runs: list[Runs]
    best: int
    next: list[RunSpec]


@dataclass(frozen=True)
class Rule:
    """How the runs of a trial are judged.

    Attributes:
        metric: the validation metric.
        sign: -1 where the lowest score is the best.
        short: keys of the runs that a trial must survive; their scores count in no mean.
        reach: what each of these must score.
        short_metric: their metric.
        short_sign: -1 where their lowest score is the best.
    """

    metric: str
    sign: int
    short: frozenset[str]
    reach: float | None
    short_metric: str
    short_sign: int

    def metric_of(self, key: str) -> str:
        """Return the metric that judges a run."""
        return self.short_metric if key in self.short else self.metric

    def mean(self, runs: Runs, seeds: int | None = None) -> float | None:
        """Return the mean score of the first ``seeds`` runs, to five digits; None where any run of all failed."""
        if any(self._failed(key, score) for key, score in runs.items()):
            return None
        scores = [score for key, score in runs.items() if key not in self.short and score is not None]
        return round(statistics.fmean(scores[:seeds]), 5) if scores else None

    def _failed(self, key: str, score: float | None) -> bool:
        if score is None:
            return True
        return self.reach is not None and key in self.short and self.short_sign * (score - self.reach) < 0

    def row(self, params: Mapping[str, Any], runs: Runs) -> dict[str, Any]:
        """Return what the file of choices has of a trial: its values, the mean score, the scores of its runs."""
        scores = {key: score for key, score in runs.items() if key not in self.short}
        short = {key: score for key, score in runs.items() if key in self.short}
        return {**params, self.metric: self.mean(runs), "runs": scores} | ({"short": short} if short else {})


def race(trials: Sequence[Trial], rule: Rule, scores: Runs) -> Standing:
    """Race the trials of one method as far as the scores of their runs are known.

    All run with the first seed; those that lead, ties together, with the next one. A trial goes on as long as it is not
    behind the leader both on the seeds they have in common and in the mean of its own; the race ends when the leader
    has all seeds and the others are. The short runs are made at once by who leads with all seeds. A trial with a failed
    run is out. Ties go to the earlier trial.
    """
    begun, best = [trial.runs[:1] for trial in trials], 0
    while True:
        missing = [run for made in begun for run in made if run.key not in scores]
        runs: list[Runs] = [{run.key: scores[run.key] for run in made if run.key in scores} for made in begun]
        if missing:
            return Standing(runs, best, missing)
        best, places = _leaders(trials, runs, rule)
        if not places:
            return Standing(runs, best, [])
        for place in places:
            left = trials[place].runs[len(begun[place]) :]
            begun[place] += left if left[0].key in rule.short else left[:1]


def _leaders(trials: Sequence[Trial], runs: Sequence[Runs], rule: Rule) -> tuple[int, list[int]]:
    """Return the place of the trial that leads, and those of the trials that make another run; none ends the race."""

    def mean(place: int, seeds: int | None = None) -> float:
        value = rule.mean(runs[place], seeds)
        return -math.inf if value is None else rule.sign * value

    made = [*map(len, runs)]
    level = [place for place in range(len(trials)) if made[place] == max(made)]
    best = max(level, key=mean)
    chasing = [
        place
        for place in range(len(trials))
        if place not in level
        and mean(place) > -math.inf
        and (mean(place) >= mean(best) or mean(place) >= mean(best, made[place]))
    ]
    if not chasing and (mean(best) == -math.inf or made[best] == len(trials[best].runs)):
        return best, []
    lead = max(map(mean, chasing or [best]))
    return best, [place for place in chasing or level if mean(place) == lead]
