"""From numbers to effects: what a claim compares, at every place and for every seed, as a function of one frame.

The frame has a row for each run: its ``place``, ``method``, ``seed`` and ``value``, NaN where there is none and the
worst infinity where the run diverged; of costs also ``tried``, how much of it the run spent. Print is such a frame too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fedbench.metric_table import Measure
from fedbench.results.claims.effect import log_ratio
from fedbench.results.places import Place, members, without
from fedbench.results.statistics import ROUNDING, Array
from fedbench.study.claims import BEST_OTHER, ClaimSpec, Comparison, Exists, Ratio, Trend, Value


@dataclass(frozen=True)
class Effects:
    """``values`` [components, places, seeds] as :func:`fedbench.results.claims.judge.verdict` takes them.

    ``against`` says of each component whom, or which other setting, it compares with; empty where there is no choice.
    ``read`` counts the rows of the frame that were looked at, from 0.
    """

    places: list[Place]
    seeds: list[int]
    values: Array
    against: list[str] = field(default_factory=list)
    read: list[int] = field(default_factory=list)


def effects(
    claim: ClaimSpec, measure: Measure, places: Sequence[Place], methods: Sequence[str], numbers: pd.DataFrame
) -> Effects:
    """Compare ``numbers`` of the metric that a claim asks for, at ``places``; ``methods`` are those shown there."""
    table = _Cube(numbers, [place for place in places if _on(claim, place)])
    with np.errstate(invalid="ignore"):
        rests, rows, against = _compared(claim, measure.sign, table, methods)
    values = np.array(rows).reshape(len(rows), len(rests), len(table.seeds))
    some = np.asarray(~np.isnan(values).all((0, 1)))
    seeds = [seed for seed, there in zip(table.seeds, some, strict=True) if there]
    return Effects(rests, seeds, values[..., some], against, table.read())


Compared = tuple[list[Place], list[Array], list[str]]
"""Places without the axes that are compared along, an array [places, seeds] for each component, and its name."""


def _compared(claim: ClaimSpec, sign: int, table: _Cube, methods: Sequence[str]) -> Compared:
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


class _Cube:
    """The values of a frame as arrays [methods, places, seeds]; of pooled places the mean over all their members.

    The last method and the last place have no numbers: they stand for those that are not there.
    """

    def __init__(self, numbers: pd.DataFrame, places: Sequence[Place]) -> None:
        self.places = places
        self._index = {frozenset(place): at for at, place in enumerate(places)}
        at, method, seed = (numbers[name].to_numpy() for name in ("place", "method", "seed"))
        known = numbers["value"].notna().to_numpy()  # variants know nothing of some
        measured = {*at[known]}
        parts = [[place] if place in measured else members(place) for place in places]
        code = {place: i for i, place in enumerate(dict.fromkeys(itertools.chain(*parts)))}
        codes = np.array([code.get(place, -1) for place in at], dtype=int)
        rows = np.flatnonzero((codes >= 0) & known)
        self.seeds = sorted({*seed[rows].tolist()}, key=str)
        self._methods = {name: i for i, name in enumerate(dict.fromkeys(method[rows]))}
        self._parts = [*([code[place] for place in part] for part in parts), [len(code)]]
        self._shape = len(self._methods) + 1, len(code) + 1, len(self.seeds)
        of_method = np.array([self._methods[name] for name in method[rows]], dtype=int)
        of_seed = {seed: i for i, seed in enumerate(self.seeds)}
        self._rows, self._at = rows, (of_method, codes[rows], [of_seed[name] for name in seed[rows]])
        self._numbers, self._values = numbers, dict[str, Array]()
        self._looked_at = np.zeros(self._shape[:2], dtype=bool)

    def of(
        self, method: str, rests: Sequence[Place], setting: Mapping[str, Value], column: str = "value"
    ) -> Array:
        """Return a method's values [rests, seeds] where ``setting`` fills up each of the ``rests``."""
        which, at = self._methods.get(method, -1), [self.index(rest, setting) for rest in rests]
        for place in at:
            self._looked_at[which, self._parts[place]] = True
        return self._by_place(column)[which, at]

    def index(self, rest: Place, setting: Mapping[str, Value]) -> int:
        """Return where the place with the axes of both is, -1 where there is none."""
        return self._index.get(frozenset({**dict(rest), **setting}.items()), -1)

    def read(self) -> list[int]:
        """Return the rows that were looked at."""
        return [int(row) for row in self._rows[self._looked_at[self._at[:2]]]]

    def _by_place(self, column: str) -> Array:
        """Return a column [methods, places, seeds], NaN where a member of a place lacks."""
        if column not in self._values:
            apart = np.full(self._shape, math.nan)
            apart[self._at] = self._numbers[column].to_numpy(dtype=float)[self._rows]
            self._values[column] = np.stack([apart[:, part].mean(1) for part in self._parts], 1)
        return self._values[column]


def _comparison(claim: Comparison, sign: int, table: _Cube) -> Compared:
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


def _trend(claim: Trend, sign: int, table: _Cube, methods: Sequence[str]) -> Compared:
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


def _ratio(claim: Ratio, sign: int, table: _Cube) -> Compared:
    other = claim.than if isinstance(claim.than, dict) else {}
    rests = without(table.places, [*claim.when, *other, *([claim.largest] if claim.largest else [])])
    rival = claim.than if isinstance(claim.than, str) else claim.method

    def cost(method: str, setting: Mapping[str, Value]) -> tuple[Array, Array]:
        """Return what was needed, infinite for a miss, and how much was tried."""
        if claim.largest:
            kept = _largest(claim, sign, table, rests, method, setting)
            return kept, kept
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
    claim: Ratio, sign: int, table: _Cube, rests: Sequence[Place], method: str, setting: Mapping[str, Value]
) -> Array:
    """Return the largest value of a setting up to which the metric stays within a margin, [rests, seeds].

    A seed without a number at the next value has none here: it may have gone on to that one.
    """
    assert claim.largest and claim.within and isinstance(claim.of, int | float)
    axis, least = claim.largest, claim.of
    first = table.of(method, rests, {**setting, axis: least})
    last, goes_on = np.where(np.isfinite(first), least, math.nan), np.isfinite(first)
    levels = {of for place in table.places if isinstance(of := dict(place)[axis], int | float)}
    for level in sorted(level for level in levels if level > least):
        at = {**setting, axis: level}
        asked = goes_on & np.array([[table.index(rest, at) >= 0] for rest in rests])
        value = table.of(method, rests, at)
        last[asked & np.isnan(value)] = math.nan
        within = sign * (first - value) <= claim.within + ROUNDING
        last[asked & within] = level
        goes_on &= ~asked | within
    return last


def _exists(claim: Exists, table: _Cube, methods: Sequence[str]) -> Compared:
    """Return by how much the best of the others is below a limit, and by how much the method is above another."""
    rests = list(table.places)
    others = np.array([_finite(table.of(name, rests, {})) for name in methods if name != claim.method])
    ran = ~np.isnan(others).all(-1, keepdims=True)
    best = np.where(ran, others, -math.inf).max(0)
    below = np.where(np.isfinite(best), claim.others_below - best, math.nan)
    mine = _finite(table.of(claim.method, rests, {})) - claim.above
    return rests, [below, _both(mine, below, mine)], ["the others' limit", "its own"]


def _finite(values: Array) -> Array:
    """Leave out seeds that diverged, where there is no side that they could be lost to."""
    return np.where(np.isfinite(values), values, math.nan)
