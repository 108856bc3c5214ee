"""From numbers to effects: what a claim compares, at every place and for every seed, as a function of one frame.

The frame has a row for each run: its ``place``, ``method``, ``seed`` and ``value``, NaN where there is none and the
worst infinity where the run diverged; of costs also ``tried``, how much of it the run spent. Print is such a frame too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedbench.metric_table import Measure
from fedbench.results.places import Place, members, without
from fedbench.results.statistics import ROUNDING, Array
from fedbench.study.claims import BEST_OTHER, ClaimSpec, Comparison, Exists, Ratio, Trend, Value


@dataclass(frozen=True)
class Effects:
    """``values`` [components, places, seeds] as :func:`fedbench.results.claims.judge.verdict` takes them.

    ``against`` says of each component whom, or which other setting, it compares with; empty where there is no choice.
    ``read`` has the rows of the frame that were looked at.
    """

    places: list[Place]
    seeds: list[int]
    values: Array
    against: list[str]
    read: pd.DataFrame


def effects(
    claim: ClaimSpec, measure: Measure, places: Sequence[Place], methods: Sequence[str], numbers: pd.DataFrame,
    cells: Collection[tuple[Place, str]] = (),
) -> Effects:  # fmt: skip
    """Compare ``numbers`` of the metric that a claim asks for, at ``places``; ``methods`` are those shown there.

    ``cells`` are the places and methods whose numbers may still come, none of print.
    """
    table = _Numbers(numbers, [place for place in places if _on(claim, place)], cells)
    with np.errstate(invalid="ignore"):
        rests, rows, against = _compared(claim, measure.sign, table, methods)
    values = np.array(rows).reshape(len(rows), len(rests), len(table.seeds))
    some = np.asarray(~np.isnan(values).all((0, 1)))
    seeds = [seed for seed, there in zip(table.seeds, some, strict=True) if there]
    return Effects(rests, seeds, values[..., some], against, table.read())


Compared = tuple[list[Place], list[Array], list[str]]
"""Places without the axes that are compared along, an array [places, seeds] for each component, and its name."""


def _compared(claim: ClaimSpec, sign: int, table: _Numbers, methods: Sequence[str]) -> Compared:
    if claim.trend:
        return _trend(claim.trend, sign, table, methods)
    if claim.ratio:
        return _ratio(claim.ratio, sign, table)
    if claim.exists:
        return _exists(claim.exists, table, methods)
    assert claim.comparison
    return _comparison(claim.comparison, sign, table)


def _on(claim: ClaimSpec, place: Place) -> bool:
    values_at = dict(place)
    return all(str(values_at[name]) in map(str, values) for name, values in claim.only.items())


class _Numbers:
    """The values of a frame at some places; of pooled places the mean over all their members."""

    def __init__(
        self, numbers: pd.DataFrame, places: Sequence[Place], cells: Collection[tuple[Place, str]]
    ) -> None:
        self.places, self.cells, self._numbers = places, cells, numbers[numbers["value"].notna()]
        self._place_of = {frozenset(place): place for place in places}
        self._rows = self._numbers.groupby(["place", "method"], sort=False).indices
        measured = {*self._numbers["place"]}
        self._parts = {place: [place] if place in measured else members(place) for place in places}
        parts = {part for of_place in self._parts.values() for part in of_place}
        pairs = zip(self._numbers["place"], self._numbers["seed"], strict=True)
        self.seeds = sorted({seed for place, seed in pairs if place in parts}, key=str)
        self._column = pd.Index(self.seeds).get_indexer(self._numbers["seed"])
        self._read = np.zeros(len(self._numbers), dtype=bool)

    def of(
        self, method: str, rests: Sequence[Place], setting: Mapping[str, Value], column: str = "value"
    ) -> Array:
        """Return a method's values [rests, seeds] where ``setting`` fills up each of the ``rests``.

        NaN where there is no such place, or a member of it has no value.
        """
        values = self._numbers[column].to_numpy(dtype=float)
        result = np.full((len(rests), len(self.seeds)), math.nan)
        for at, rest in enumerate(rests):
            parts = self._parts.get(self.place(rest, setting), [()])
            apart = np.full((len(parts), len(self.seeds)), math.nan)
            for of_part, part in zip(apart, parts, strict=True):
                rows = self._rows.get((part, method), [])
                of_part[self._column[rows]] = values[rows]
                self._read[rows] = True
            result[at] = apart.mean(0)
        return result

    def place(self, rest: Place, setting: Mapping[str, Value]) -> Place:
        """Return the place with the axes of both, an empty one where there is none."""
        return self._place_of.get(frozenset({**dict(rest), **setting}.items()), ())

    def read(self) -> pd.DataFrame:
        """Return the rows that were looked at."""
        return self._numbers[self._read]


def _comparison(claim: Comparison, sign: int, table: _Numbers) -> Compared:
    other = claim.than if isinstance(claim.than, dict) else {}
    rests = without(table.places, [*claim.change, *claim.when, *other])
    worst = -sign * math.inf
    """Of a run that diverged: the seed is lost, or if it is a rival's won; where both did it is lost."""

    def value(method: str, setting: Mapping[str, Value]) -> Array:
        for axis, ends in claim.change.items():
            before, after = (table.of(method, rests, {**setting, axis: end}) for end in ends)
            return _both(before, after, np.where(np.isinf(before) | np.isinf(after), worst, after - before))
        return table.of(method, rests, setting)

    rows, names = [], []
    for method in claim.method:
        mine = value(method, claim.when)
        if isinstance(claim.than, float):
            rivals = {"": np.full(mine.shape, claim.than)}
        elif isinstance(claim.than, dict):
            rivals = {"": value(claim.rival or method, claim.than)}
        else:
            rivals = {rival: value(rival, {}) for rival in claim.than if rival != method}
        for rival, theirs in rivals.items():
            rows.append(_both(mine, theirs, np.where(mine == worst, -math.inf, sign * (mine - theirs))))
            names.append(f"{method} over {rival}" if len(claim.method) > 1 and rival else rival or method)
    return rests, rows, names if len(rows) > 1 else []


def _both(method: Array, other: Array, values: Array) -> Array:
    """Return values where both sides have the seed: others differ in partitions and batches too."""
    return np.where(np.isnan(method) | np.isnan(other), math.nan, values)


def _trend(claim: Trend, sign: int, table: _Numbers, methods: Sequence[str]) -> Compared:
    levels = list(dict.fromkeys(dict(place)[claim.along] for place in table.places))
    if all(isinstance(level, int | float) for level in levels):
        levels.sort(key=float)
    if claim.falls:
        levels.reverse()
    rests = without(table.places, [claim.along])
    mine, *others = [claim.method] if claim.gap is None else claim.gap
    if others == [BEST_OTHER]:
        others = [name for name in methods if name != mine]

    def value(level: Value) -> Array:
        ours, *rivals = (
            _finite(table.of(str(name), rests, {claim.along: level})) for name in (mine, *others)
        )
        return sign * (ours - sign * np.max(sign * np.array(rivals), axis=0)) if rivals else ours

    return rests, [value(level) for level in levels], []


def _ratio(claim: Ratio, sign: int, table: _Numbers) -> Compared:
    other = claim.than if isinstance(claim.than, dict) else {}
    rests = without(table.places, [*claim.when, *other, *([claim.largest] if claim.largest else [])])
    rival = claim.than if isinstance(claim.than, str) else claim.method

    def cost(method: str, setting: Mapping[str, Value]) -> tuple[Array, Array]:
        """Return what was needed, infinite for a miss, and how much was tried."""
        if claim.largest:
            return _largest(claim, sign, table, rests, method, setting)
        value = table.of(method, rests, setting)
        if claim.to:
            return value, table.of(method, rests, setting, "tried")
        value = np.where((value > 0) & np.isfinite(value), value, math.nan)
        return value, value

    mine, theirs = cost(claim.method, claim.when), cost(rival, other)
    if claim.at_most:
        mine, theirs = theirs, mine
    bounds = np.vectorize(log_ratio, otypes=[float, float])(mine[0], theirs[0], mine[1], theirs[1])
    return rests, [_both(mine[0], theirs[0], bound) for bound in bounds], []


def _largest(
    claim: Ratio,
    sign: int,
    table: _Numbers,
    rests: Sequence[Place],
    method: str,
    setting: Mapping[str, Value],
) -> tuple[Array, Array]:
    """Return the largest value of a setting up to which the metric stays within a margin, and how far it was tried.

    Both are [rests, seeds]. Where the last value tried is within, the largest is infinite: it may be any beyond. A seed
    without a number at the next value has none here: it may have gone on to that one.
    """
    assert claim.largest and claim.within and isinstance(claim.of, int | float)
    axis, least = claim.largest, claim.of
    first = table.of(method, rests, {**setting, axis: least})
    last, goes_on = np.where(np.isfinite(first), least, math.nan), np.isfinite(first)
    levels = {of for place in table.places if isinstance(of := dict(place)[axis], int | float)}
    for level in sorted(level for level in levels if level > least):
        at = {**setting, axis: level}
        asked = goes_on & np.array([[table.place(rest, at) != ()] for rest in rests])
        value = table.of(method, rests, at)
        last[asked & np.isnan(value)] = math.nan
        within = sign * (first - value) <= claim.within + ROUNDING
        last[asked & within] = level
        goes_on &= ~asked | within
    return np.where(goes_on, math.inf, last), last


def _exists(claim: Exists, table: _Numbers, methods: Sequence[str]) -> Compared:
    """Return by how much the best of the others is below a limit, and by how much the method is above another.

    One that has not run may refute it; one that diverged, or has no cell, is left out.
    """
    rests, others = list(table.places), [name for name in methods if name != claim.method]
    theirs = np.array([table.of(name, rests, {}) for name in others])
    cells = np.array([[(place, name) in table.cells for place in rests] for name in others], bool)
    counts = (cells & np.isnan(theirs).all(-1)) | np.isfinite(theirs).any(-1)
    best = np.where(counts[..., None], _finite(theirs), -math.inf).max(0)
    below = np.where(np.isfinite(best), claim.others_below - best, math.nan)
    mine = _finite(table.of(claim.method, rests, {})) - claim.above
    return rests, [below, _both(mine, below, mine)], ["the others' limit", "its own"]


def _finite(values: Array) -> Array:
    """Leave out seeds that diverged, where there is no side that they could be lost to."""
    return np.where(np.isfinite(values), values, math.nan)


def log_ratio(numerator: float, denominator: float, most_n: float, most_d: float) -> tuple[float, float]:
    """Return bounds of log(numerator / denominator); an infinite side was not reached within its ``most``.

    A ``most`` that is not known bounds nothing; one that is infinite is of a run that diverged.
    """
    low, high = -math.inf, math.inf
    least = numerator if math.isfinite(numerator) else most_n
    most = denominator if math.isfinite(denominator) else most_d
    if math.isfinite(denominator) and not math.isnan(least):
        low = _less(least, denominator)
    if math.isfinite(numerator) and not math.isnan(most):
        high = _less(numerator, most)
    return low, high


def _less(cost: float, other: float) -> float:
    """Return the difference of logarithms of two costs, which may be 0 both and are equal then."""
    ours, theirs = (math.log(of) if of else -math.inf for of in (cost, other))
    return ours - theirs if cost or other else 0.0
