"""The race of a method's trials: which of them get another seed, which one wins, and by how much."""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from fedbench.specs import RunSpec

Runs = dict[str, float | None]
"""Scores of a trial's runs by their keys in the store, None where one diverged."""


Race = Generator[list[RunSpec], list[float | None], tuple[list[Runs], int]]
"""Yields the runs whose scores it needs next, in any order of training; is sent these; returns what it found."""


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

    def seeds(self, runs: Runs) -> int:
        """Count the runs that count in the mean."""
        return len(runs.keys() - self.short)


def race(trials: Sequence[Sequence[RunSpec]], rule: Rule) -> Race:
    """Race the trials of one method, each a list of runs that differ in their seed, to find the best.

    All run with the first seed; those that lead, ties together, with the next one. A trial goes on as long as it is not
    behind the leader both on the seeds they have in common and in the mean of its own; the race ends when the leader
    has all seeds and the others are. The short runs, the last ones, are made at once by who leads with all seeds. A
    trial with a failed run is out. Ties go to the earlier trial.

    Returns:
        The scores of each trial's runs by their keys, and the place of the best trial.
    """
    firsts = [specs[0] for specs in trials]
    runs: list[Runs] = [{spec.key: score} for spec, score in zip(firsts, (yield firsts), strict=True)]

    def mean(place: int, seeds: int | None = None) -> float:
        value = rule.mean(runs[place], seeds)
        return -math.inf if value is None else rule.sign * value

    def following(place: int) -> Sequence[RunSpec]:
        left = trials[place][len(runs[place]) :]
        return left if left[0].key in rule.short else left[:1]

    while True:
        most = max(map(len, runs))
        level = [place for place in range(len(trials)) if len(runs[place]) == most]
        ahead = max(level, key=mean)
        chasing = [
            place
            for place in range(len(trials))
            if len(runs[place]) < most
            and mean(place) > -math.inf
            and (mean(place) >= mean(ahead) or mean(place) >= mean(ahead, len(runs[place])))
        ]
        if not chasing and (mean(ahead) == -math.inf or most == len(trials[ahead])):
            return runs, ahead
        best = max(map(mean, chasing or [ahead]))
        places = [place for place in chasing or level if mean(place) == best]
        wanted = [(place, spec) for place in places for spec in following(place)]
        for (place, spec), score in zip(wanted, (yield [spec for _, spec in wanted]), strict=True):
            runs[place][spec.key] = score


def margin(runs: Sequence[Runs], best: int, rule: Rule) -> tuple[int, float, int] | None:
    """Return the trial that comes closest to the best: its place, by how much it is behind, and on how many seeds.

    The seeds are those that both have; None where no other trial has a score.
    """
    behind = []
    for place, made in enumerate(runs):
        shared = rule.seeds(made)  # the best has all
        means = [rule.mean(runs[p], shared) for p in (best, place)]
        if place != best and means[0] is not None and means[1] is not None:
            behind.append((place, round(rule.sign * (means[0] - means[1]), 5), shared))
    return min(behind, key=lambda item: item[1], default=None)
