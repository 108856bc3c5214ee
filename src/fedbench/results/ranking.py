"""Who is ahead of whom: ranks of methods that can be told apart, and what is dominated. Pure arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedbench.results.claims.judge import FEWEST
from fedbench.results.statistics import LEVEL, Array, holm, least_spread, p_differ


@dataclass(frozen=True)
class Rank:
    """The ranks that a method may have: behind all that are shown to be better, before all shown to be worse."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


def ranks(values: Array) -> list[Rank]:
    """Rank methods by their means over seeds.

    Two methods are told apart by a two-sided t-test, paired by seed, corrected for all pairs after Holm; differences
    spread by the metric's step at least. Below three seeds all are tied.

    Args:
        values: [methods, seeds], larger is better, no NaN.
    """
    count, seeds = values.shape
    ahead = np.zeros((count, count), dtype=bool)
    pairs = list(itertools.combinations(range(count), 2))
    if seeds >= FEWEST and pairs:
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        d = values[first] - values[second]
        apart = holm(p_differ(d, least_spread(values))) <= LEVEL
        better = apart & (d.mean(-1) > 0)
        worse = apart & (d.mean(-1) < 0)
        ahead[first[better], second[better]] = True
        ahead[second[worse], first[worse]] = True
    return [Rank(1 + int(ahead[:, i].sum()), count - int(ahead[i].sum())) for i in range(count)]


def dominators(costs: Sequence[float], values: Sequence[float]) -> list[int | None]:
    """Return for each method the best that is as good for no more, or better for as much; None on the Pareto front.

    Args:
        costs: what each spends; NaN where it is not known, which neither dominates nor is dominated.
        values: what each reaches, larger is better.
    """
    best: list[int | None] = []
    for cost, value in zip(costs, values, strict=True):
        over = [
            j
            for j, (c, v) in enumerate(zip(costs, values, strict=True))
            if c <= cost and v >= value and (c < cost or v > value)
        ]
        best.append(max(over, key=lambda j: values[j]) if over else None)
    return best
