"""Seeds measured here, and those of the same cell that came with the repository, as one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fedbench.report.numbers.measurement import (
    COSTS,
    DIVERGED,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    Cost,
    Measurement,
    Repeat,
)
from fedbench.report.numbers.shipped import Shelf


def joined(one: Measurement, seeds: Sequence[int], shelf: Shelf) -> Measurement:
    """Add to a number that lacks seeds those that were shipped for the same cell, if that makes it whole.

    A run's key does not depend on the other seeds of its cell, so the values are those that one machine would have
    measured. The shelf gives a row only under the keys of today's configuration. Where the shipped row has all seeds
    itself, nothing is joined: it is the number. Of a cell in which a seed diverged the others are kept; there is no
    mean.

    Args:
        one: measured here.
        seeds: that the cell is to have.
        shelf: what was shipped.
    """
    other = _lacking(one, seeds, shelf)
    if other is None or (one.status != DIVERGED and set(other.values) >= set(seeds)):
        return one
    both = _both(one, other, seeds)
    return both if one.status == DIVERGED or set(both.values) >= set(seeds) else one


def whole(one: Measurement, seeds: Sequence[int], shelf: Shelf) -> Measurement:
    """Return what is shown of a number that lacks seeds: the shipped one that has them all, else both joined.

    Also where both together lack some. It is marked as shipped, in part or as a whole. What diverged or failed here
    stays, and where a seed diverged elsewhere that is shown until all are trained here.
    """
    other = _lacking(one, seeds, shelf)
    if other is None:
        return one
    if one.status == INCOMPLETE and (
        other.status == DIVERGED or (other.status == FINISHED and set(other.values) >= set(seeds))
    ):
        return other
    both = _both(one, other, seeds)
    return one if both is one else replace(both, shipped=True)


def _lacking(one: Measurement, seeds: Sequence[int], shelf: Shelf) -> Measurement | None:
    """Return what was shipped of a number that lacks seeds, None where it lacks none or nothing was."""
    if one.status not in (INCOMPLETE, NOT_REACHED, DIVERGED) or set(one.values) >= set(seeds):
        return None
    return shelf.find(one.scale, one.dataset, one.setting, one.method, one.metric)


def _both(one: Measurement, other: Measurement, seeds: Sequence[int]) -> Measurement:
    """Join two numbers of a cell: of the seeds asked for those that either has, those of ``one`` first."""
    if other.status == DIVERGED and one.status != DIVERGED:
        return one
    known = {**other.values, **one.values}
    values: dict[Repeat, float] = {seed: known[seed] for seed in seeds if seed in known}
    taken = sum(seed not in one.values for seed in values)
    if not taken:
        return one
    weights = (len(values) - taken, taken)

    def mean(name: str, first: Any = one, second: Any = other) -> float:
        return _weighted((getattr(first, name), getattr(second, name)), weights)

    costs = {name: mean(name, one.cost, other.cost) for name in COSTS}
    missed = sum(math.isinf(value) for value in values.values())
    best = "; ".join(filter(None, (_best(one), _best(other))))
    status, reason = one.status, one.reason
    if status != DIVERGED:
        short = len(values) < len(seeds)
        status = NOT_REACHED if missed else INCOMPLETE if short else FINISHED
        reason = f"{len(values)} of {len(seeds)} seeds are done" if short else ""
        reason = f"{missed} of {len(values)} seeds: {best}" if missed else reason
    return replace(
        one,
        status=status,
        reason=reason,
        values=values,
        commit=_words(one.commit, other.commit, " "),
        source=_words(one.source, other.source, " "),
        paces={seed: pace for seed, pace in {**other.paces, **one.paces}.items() if seed in values},
        signs={seed: word for seed, word in {**other.signs, **one.signs}.items() if seed in values},
        device_mean=mean("device_mean"),
        device_variance=mean("device_variance"),
        cost=Cost(
            **costs,
            hardware=_words(one.cost.hardware, other.cost.hardware, "; "),
            equal_costs=" ".join(name for name in COSTS if _equal(name, one.cost, other.cost)),
        ),
    )


def _best(one: Measurement) -> str:
    """Return how near the seeds came that missed a target, without how many they are; nothing if none did."""
    return one.reason.rpartition(" seeds: ")[2] if one.status == NOT_REACHED else ""


def _weighted(values: tuple[float, float], weights: tuple[int, int]) -> float:
    """Return the mean of two means over so many runs each; of what nobody noted nothing is said."""
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if not math.isnan(value)]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else math.nan


def _equal(name: str, first: Cost, second: Cost) -> bool:
    """Say whether the seeds of two numbers share a cost; shipped ones have six digits."""
    pair = getattr(first, name), getattr(second, name)
    return all(name in one.equal_costs.split() for one in (first, second)) and math.isclose(
        *pair, rel_tol=1e-5
    )


def _words(first: str, second: str, blank: str) -> str:
    return blank.join(sorted({word for text in (first, second) for word in text.split(blank) if word}))
