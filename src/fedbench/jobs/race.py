"""The race of a method's trials: which of them get another seed, which one wins, and by how much."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Generator, Sequence

from fedbench.specs import RunSpec

Runs = dict[str, float | None]
"""Scores of a trial's runs by their keys in the store, None where one diverged."""


Race = Generator[list[RunSpec], list[float | None], tuple[list[Runs], int]]
"""Yields the runs whose scores it needs next, in any order of training; is sent these; returns what it found."""


def race(trials: Sequence[Sequence[RunSpec]], scored: int, sign: int = 1) -> Race:
    """Race the trials of one method, each a list of runs that differ in their seed, to find the best.

    All run with the first seed; those that lead, ties together, with the next one. A trial goes on as long as it is not
    behind the leader both on the seeds they have in common and in the mean of its own; the race ends when the leader
    has all seeds and the others are. A trial of which a run diverges is out. Only the first ``scored`` runs count in a
    mean; those after them are made at once, by who leads with all that count, to see that none diverges. Ties go to the
    earlier trial. With ``sign`` -1 the lowest score is the best.

    Returns:
        The scores of each trial's runs by their keys, and the place of the best trial.
    """
    firsts = [specs[0] for specs in trials]
    runs: list[Runs] = [{spec.key: score} for spec, score in zip(firsts, (yield firsts), strict=True)]

    def mean(place: int, seeds: int | None = None) -> float:
        found = mean_score(dict(itertools.islice(runs[place].items(), seeds)), scored)
        return -math.inf if found is None else sign * found

    def following(place: int) -> Sequence[RunSpec]:
        done = len(runs[place])
        return trials[place][done : done + 1 if done < scored else None]

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


def margin(runs: Sequence[Runs], best: int, scored: int, sign: int = 1) -> tuple[int, float, int] | None:
    """Return the trial that comes closest to the best: its place, by how much it is behind, and on how many seeds.

    The seeds are those that both have; None where no other trial has a score.
    """
    found = []
    for place, made in enumerate(runs):
        shared = min(len(made), len(runs[best]), scored)
        out = None in made.values()
        means = [
            None if out else mean_score(dict(itertools.islice(runs[p].items(), shared)))
            for p in (best, place)
        ]
        if place != best and means[0] is not None and means[1] is not None:
            found.append((place, round(sign * (means[0] - means[1]), 5), shared))
    return min(found, key=lambda item: item[1], default=None)


def mean_score(runs: Runs, scored: int | None = None) -> float | None:
    """Return the mean score of a trial's first ``scored`` runs, to five digits; None where one of all diverged."""
    scores = [score for score in runs.values() if score is not None]
    return round(statistics.fmean(scores[:scored]), 5) if len(scores) == len(runs) else None
