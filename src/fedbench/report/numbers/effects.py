"""From numbers to effects: what a claim compares, at every place and for every seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from fedbench.measures import Measure
from fedbench.plan.claims import BEST_OTHER, ClaimSpec, Comparison, Exists, Ratio, Trend, Value
from fedbench.report.numbers.measurement import Repeat
from fedbench.results.claims.effect import log_ratio
from fedbench.results.claims.judge import FEWEST, Rule
from fedbench.results.statistics import ROUNDING, Array

Place = tuple[tuple[str, Value], ...]
"""A dataset and a setting: (axis, value) for each axis but the method; in effects without those a claim runs over."""
Values = Mapping[Repeat, float]
"""A number of each seed."""
Needs = Mapping[Repeat, tuple[float, float]]
"""What each seed needed, infinite for a miss, and how much it tried."""
MEAN: Repeat = "mean"
"""In the place of a seed: a mean over seeds whose single values nobody kept."""


class Reader(Protocol):
    """Where numbers come from: runs, or print."""

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the final value of each seed, empty where nothing ran."""

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """Return the mean of each seed's curve."""

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Return the ``x`` at which each seed's curve first reaches a target."""


@dataclass(frozen=True)
class Effects:
    """``values`` [components, places, seeds] as :func:`fedbench.results.claims.judge.verdict` takes them.

    ``against`` says of each component whom, or which other setting, it compares with; empty where there is no choice.
    """

    places: list[Place]
    seeds: list[Repeat]
    values: Array
    against: list[str] = field(default_factory=list)


def rule_of(claim: ClaimSpec, measure: Measure) -> Rule:
    """Return what the arithmetic is asked for a claim."""
    if claim.ratio:
        bound = claim.ratio.at_least or 1 / (claim.ratio.at_most or math.inf)
        return Rule("ratio", math.log(bound))
    one = claim.comparison or claim.trend
    return Rule(
        claim.form, one.margin if one else 0.0, measure.matters, "some" if claim.exists else claim.holds
    )


def effects(
    claim: ClaimSpec, measure: Measure, places: Sequence[Place], methods: Sequence[str], reader: Reader
) -> Effects:
    """Read the effects of a claim at ``places``, where ``methods`` are the methods shown."""
    asked = [place for place in places if _on(claim, place)]
    if claim.trend:
        return _trend(claim.trend, measure, asked, methods, reader)
    if claim.ratio:
        return _ratio(claim.ratio, measure, asked, reader)
    if claim.exists:
        return _exists(claim.exists, asked, methods, reader)
    assert claim.comparison
    return _comparison(claim.comparison, measure, asked, reader)


def _on(claim: ClaimSpec, place: Place) -> bool:
    here = dict(place)
    return all(str(here[name]) in map(str, values) for name, values in claim.only.items())


def _comparison(claim: Comparison, measure: Measure, places: Sequence[Place], reader: Reader) -> Effects:
    other = claim.than if isinstance(claim.than, dict) else {}
    rests = _without(places, [*claim.change, *claim.when, *other])

    def value(rest: Place, method: str, setting: Mapping[str, Value]) -> Values:
        read = reader.mean if claim.over == "curve" else reader.end

        def at(more: Mapping[str, Value]) -> Values:
            found = _full(places, rest, {**setting, **more})
            return read(found, method, claim.metric) if found else {}

        for axis, (first, second) in claim.change.items():
            return _joined(change, at({axis: first}), at({axis: second}))
        return at({})

    worst = -measure.sign * math.inf
    """Of a run that diverged: the seed is lost, or if it is a rival's won; where both did it is lost."""

    def change(before: float, after: float) -> float:
        return worst if math.isinf(before) or math.isinf(after) else after - before

    def lead(a: float, b: float) -> float:
        return -math.inf if a == worst else measure.sign * (a - b)

    rows: list[list[Values]] = []
    names = []
    for method in claim.method:
        mine = [value(rest, method, claim.when) for rest in rests]
        theirs: dict[str, list[Values]]
        if isinstance(claim.than, float):
            theirs = {"": [dict.fromkeys(one, claim.than) for one in mine]}
        elif isinstance(claim.than, dict):
            theirs = {"": [value(rest, method, claim.than) for rest in rests]}
        else:
            theirs = {
                rival: [value(rest, rival, {}) for rest in rests] for rival in claim.than if rival != method
            }
        for rival, line in theirs.items():
            rows.append([_joined(lead, *pair) for pair in zip(mine, line, strict=True)])
            names.append(f"{method} over {rival}" if len(claim.method) > 1 and rival else rival or method)
    return replace(_array(rests, rows), against=names if len(rows) > 1 else [])


def _trend(
    claim: Trend, measure: Measure, places: Sequence[Place], methods: Sequence[str], reader: Reader
) -> Effects:
    levels = list(dict.fromkeys(dict(place)[claim.along] for place in places))
    if all(isinstance(level, int | float) for level in levels):
        levels.sort(key=float)
    if claim.falls:
        levels.reverse()
    rests = _without(places, [claim.along])

    def value(rest: Place, level: Value) -> Values:
        place = _full(places, rest, {claim.along: level})
        if place is None:
            return {}
        if claim.gap is None:
            return _finite(reader.end(place, str(claim.method), claim.metric))
        one, other = claim.gap
        rivals = [name for name in methods if name != one] if other == BEST_OTHER else [other]
        best = _joined(
            lambda *found: measure.sign * max(measure.sign * each for each in found),
            *(_finite(reader.end(place, name, claim.metric)) for name in rivals),
        )
        mine = _finite(reader.end(place, one, claim.metric))
        return _joined(lambda a, b: measure.sign * (a - b), mine, best)

    return _array(rests, [[value(rest, level) for rest in rests] for level in levels])


def _ratio(claim: Ratio, measure: Measure, places: Sequence[Place], reader: Reader) -> Effects:
    other = claim.than if isinstance(claim.than, dict) else {}
    rests = _without(places, [*claim.when, *other, *([claim.largest] if claim.largest else [])])
    rival = claim.than if isinstance(claim.than, str) else claim.method

    def needs(rest: Place, method: str, setting: Mapping[str, Value]) -> Needs:
        if claim.largest:
            return _largest(claim, measure, places, rest, method, setting, reader)
        place = _full(places, rest, setting)
        if place is None:
            return {}
        assert claim.needs
        for metric, target in claim.to.items():
            return reader.needed(place, method, metric, target, measure.sign, claim.needs)
        return {
            seed: (value, value)
            for seed, value in reader.end(place, method, claim.needs).items()
            if 0 < value < math.inf
        }

    low: list[Values] = []
    high: list[Values] = []
    for rest in rests:
        mine, theirs = _alike(needs(rest, claim.method, claim.when), needs(rest, rival, other))
        if claim.at_most:
            mine, theirs = theirs, mine
        bounds = {
            seed: log_ratio(mine[seed][0], theirs[seed][0], mine[seed][1], theirs[seed][1])
            for seed in mine
            if seed in theirs
        }
        low.append({seed: pair[0] for seed, pair in bounds.items()})
        high.append({seed: pair[1] for seed, pair in bounds.items()})
    return _array(rests, [low, high])


def _alike(*sides: Needs) -> list[Needs]:
    """Return two sides, both by their means where of one nothing else is known."""
    if not any(MEAN in side for side in sides) or not all(sides):
        return [*sides]
    means = [float(np.mean([value for value, _ in side.values()])) for side in sides]
    return [{MEAN: (mean, mean)} for mean in means]


def _largest(
    claim: Ratio, measure: Measure, places: Sequence[Place], rest: Place, method: str,
    setting: Mapping[str, Value], reader: Reader,
) -> Needs:  # fmt: skip
    """Return the largest value of a setting up to which the metric stays within a margin, of each seed.

    A seed without a number at the next value has none here: it may have gone on to that one.
    """
    assert claim.largest and claim.metric and claim.within
    axis = claim.largest
    levels = sorted({value for p in places if isinstance(value := dict(p)[axis], int | float)})
    found = {
        level: reader.end(place, method, claim.metric)
        for level in levels
        if (place := _full(places, rest, {**setting, axis: level}))
    }
    base = _finite(next((found[level] for level in found if level == claim.of), {}))
    result = {}
    for seed, value in base.items():
        kept = [level for level in found if level == claim.of]
        for level in (level for level in found if level > kept[0]):
            if seed not in found[level]:
                kept = []
                break
            if measure.sign * (value - found[level][seed]) > claim.within + ROUNDING:
                break
            kept.append(level)
        if kept:
            result[seed] = (float(kept[-1]), float(kept[-1]))
    return result


def _exists(claim: Exists, places: Sequence[Place], methods: Sequence[str], reader: Reader) -> Effects:
    """Read by how much the best of the others is below a limit, and by how much the method is above another."""
    others = [name for name in methods if name != claim.method]
    rows: list[list[Values]] = [[], []]
    for place in places:
        known = [_finite(reader.end(place, name, claim.metric)) for name in others]
        below = _joined(lambda *values: claim.others_below - max(values), *filter(None, known))
        mine = _finite(reader.end(place, claim.method, claim.metric))
        rows[0].append(below)
        rows[1].append({seed: value - claim.above for seed, value in mine.items() if seed in below})
    return replace(_array(list(places), rows), against=["the others' limit", "its own"])


def _finite(values: Values) -> Values:
    """Leave out seeds that diverged, where there is no side that they could be lost to."""
    return {seed: value for seed, value in values.items() if math.isfinite(value)}


def _joined(function: Callable[..., float], *sides: Values) -> Values:
    """Apply a function to the values of each seed that all sides have; to means where a side has nothing else.

    Sides that have seeds and none in common say nothing: they differ in partitions and batches too.
    """
    if not sides or not all(sides):
        return {}
    shared = [seed for seed in sides[0] if seed != MEAN and all(seed in side for side in sides)]
    if shared or not any(MEAN in side for side in sides):
        return {seed: function(*(side[seed] for side in sides)) for seed in shared}
    return {MEAN: function(*(float(np.mean(list(side.values()))) for side in sides))}


def _without(places: Iterable[Place], axes: Iterable[str]) -> list[Place]:
    """Return the places without some axes, each once."""
    dropped = set(axes)
    return list(dict.fromkeys(tuple(pair for pair in place if pair[0] not in dropped) for place in places))


def _full(places: Sequence[Place], rest: Place, setting: Mapping[str, Value]) -> Place | None:
    """Return the place with the axes of ``rest`` and ``setting``, None where there is none."""
    wanted = {**dict(rest), **setting}
    return next((place for place in places if dict(place) == wanted), None)


def _array(places: list[Place], rows: Sequence[Sequence[Values]]) -> Effects:
    """Lay values out as [components, places, seeds].

    A place that has means only waits where another has seeds enough for a verdict. Where none has, all count by their
    means: one block.
    """
    enough = [min(len({*row[j]} - {MEAN}) for row in rows) >= FEWEST for j, _ in enumerate(places)]
    if not any(enough) and any(MEAN in values for row in rows for values in row):
        rows = [[{MEAN: float(np.mean(list(v.values())))} if v else v for v in row] for row in rows]
    seeds = sorted({seed for row in rows for values in row for seed in values}, key=str)
    array = np.full((len(rows), len(places), len(seeds)), math.nan)
    for i, row in enumerate(rows):
        for j, values in enumerate(row):
            for seed, value in values.items():
                array[i, j, seeds.index(seed)] = value
    return Effects(places, seeds, array)
