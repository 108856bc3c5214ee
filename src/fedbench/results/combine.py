"""Measurements made of others: the average over settings or along an axis of a table, and the slope along one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import SupportsFloat

import numpy as np

from fedbench import metric_table
from fedbench.data.summary import Counts
from fedbench.results.aggregate import Repeat, summarised
from fedbench.results.auc_interval import gain_interval
from fedbench.results.frame import (
    DIVERGED,
    FAILED,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    NOT_RUN,
    UNDEFINED,
    Measured,
)
from fedbench.results.names import AVERAGE, SLOPE
from fedbench.results.places import Place
from fedbench.results.statistics import LEAST, half_width, slope
from fedbench.study.references import FEDERATED, TRAINING, gain_over
from fedbench.study.schema import Value

Groups = Iterable[tuple[tuple[Place, str, str], list[Measured]]]
"""Places, methods and metrics with the measurements that something is made of there."""


def pool(numbers: Sequence[Measured], settings: Sequence[str]) -> list[Measured]:
    """Return the averages of cells that differ in ``settings`` alone, at the place without these.

    They are taken as :func:`averages` are: a spread over seeds holds no difference between settings, and there are as
    many repeats as seeds.
    """
    return _averaged(
        _grouped(numbers, lambda place: tuple(pair for pair in place if pair[0] not in settings))
    )


def averages(numbers: Sequence[Measured], axis: str, values: Sequence[Value]) -> list[Measured]:
    """Return the averages over ``values`` of an axis, at the place that calls its value :data:`AVERAGE`.

    They are taken seed by seed, so that the spread is that of the average over seeds; only seeds that all parts have
    count. Without all parts there is nothing to compare: the status is ``not run``.
    """
    return _averaged(_along(numbers, axis, values, AVERAGE), len(values))


def _averaged(groups: Groups, wanted: int = 1) -> list[Measured]:
    rows = []
    for at, parts in groups:
        row = _together(at, parts, by_seed([part.values for part in parts], np.mean), wanted)
        rows.append(summarised(replace(row, paces=by_seed([part.paces for part in parts], np.mean))))
    return rows


def slopes(numbers: Sequence[Measured], axis: str, values: Sequence[Value]) -> list[Measured]:
    """Return the slopes of log value over log setting, at the place that calls the setting's value :data:`SLOPE`.

    They are fitted seed by seed, to seeds that all parts have. What was not reached somewhere has no slope, nor has a
    number that is not positive; a method that stands at fewer than three of the ``values`` has none.
    """
    rows = []
    for at, parts in _along(numbers, axis, values, SLOPE):
        if len(parts) < LEAST:
            continue
        x = [float(dict(part.place)[axis]) for part in parts]
        fits = by_seed([part.values for part in parts], functools.partial(slope, x))
        known = {seed: fit for seed, fit in fits.items() if math.isfinite(fit)}
        row = _together(at, parts, known, len(values))
        if len(parts) >= len(values) and fits and row.status == NOT_RUN:
            row.status, row.reason = UNDEFINED, "a slope of logarithms takes positive numbers"
        rows.append(summarised(row))
    return rows


def gains(
    numbers: Sequence[Measured],
    reference: str,
    counts: Callable[[Place], Mapping[str, Counts]],
    correlation: Callable[[Place, str, str, Collection[int]], float],
) -> list[Measured]:
    """Return federated minus ``reference`` seed by seed, at the place that calls ``training`` the gain.

    The interval is over seeds, and that of an AUC over the draw of test samples, too: ``counts`` gives those of each
    site at a place, ``correlation`` that of both AUCs by place, method, metric and seeds, NaN where it is not known.
    """
    rows = []
    for at, parts in _along(numbers, TRAINING, (reference, FEDERATED), gain_over(reference)):
        of = {dict(part.place)[TRAINING]: part for part in parts}
        pair = [of[name] for name in (FEDERATED, reference) if name in of]
        differences = by_seed([part.values for part in pair], lambda values: values[0] - values[1])
        gain = summarised(_together(at, pair, differences, 2))
        shared = correlation(at[0], *at[1:], gain.values.keys())
        low, high = _interval(gain, pair, counts(at[0]), shared)
        rows.append(replace(gain, low=low, high=high, paired=not math.isnan(shared)))
    return rows


def _interval(
    gain: Measured, pair: Sequence[Measured], counts: Mapping[str, Counts], shared: float
) -> tuple[float, float]:
    """Return the ends of the interval of a gain, none where nothing tells of its spread."""
    half, (metric, _, site) = float(half_width(gain.std, gain.n_seeds)), gain.metric.partition("@")
    if metric == "test_auc" and site in counts and not math.isnan(gain.mean):
        of = counts[site]
        ours, other = (float(np.mean([part.values[seed] for seed in gain.values])) for part in pair)
        of_seeds = 0.0 if math.isnan(half) else half
        known = 0.0 if math.isnan(shared) else shared
        return gain_interval(ours, other, of.positive or 0, of.negative or 0, of_seeds, known)
    if metric.startswith(
        (*metric_table.SITES, "test_auc")
    ):  # an interval over seeds alone would be too short
        return math.nan, math.nan
    return gain.mean - half, gain.mean + half


def by_seed(
    parts: Sequence[Mapping[Repeat, float]], made_of: Callable[[list[float]], SupportsFloat]
) -> dict[Repeat, float]:
    """Return what is ``made_of`` the numbers of several parts for each seed that all of them have."""
    seeds = [seed for seed in parts[0] if all(seed in part for part in parts)]
    return {seed: float(made_of([part[seed] for part in parts])) for seed in seeds}


def _along(numbers: Sequence[Measured], axis: str, values: Sequence[Value], name: str) -> Groups:
    """Group what differs in ``axis`` alone, at the place that calls the axis's value ``name``."""
    chosen = [number for number in numbers if dict(number.place)[axis] in values]
    return _grouped(chosen, lambda place: tuple((a, name if a == axis else value) for a, value in place))


def _grouped(numbers: Iterable[Measured], place_of: Callable[[Place], Place]) -> Groups:
    groups: dict[tuple[Place, str, str], list[Measured]] = {}
    for part in numbers:
        groups.setdefault((place_of(part.place), part.method, part.metric), []).append(part)
    return groups.items()


def _together(
    at: tuple[Place, str, str], parts: Sequence[Measured], values: Mapping[Repeat, float], wanted: int
) -> Measured:
    """Return what ``wanted`` measurements give together, which is not run where some of them lack.

    The worst status among them decides.
    """
    status, reason, seeds = FINISHED, "", max(part.n_wanted for part in parts)
    worst = next((s for s in (DIVERGED, FAILED, UNDEFINED, NOT_REACHED) for p in parts if p.status == s), "")
    if len(parts) < wanted:
        status, reason = NOT_RUN, f"only {len(parts)} of its {wanted} values are run"
        values, seeds = {}, 0
    elif worst:
        bad = [part.reason for part in parts if part.status == worst]
        status, reason = worst, f"{len(bad)} of {len(parts)} cells: {'; '.join(_unique(bad))}"
    elif not values:
        status, reason = NOT_RUN, "; ".join(_unique(part.reason for part in parts))
    elif len(values) < seeds:
        status, reason = INCOMPLETE, f"{len(values)} of {seeds} runs are done"
    return Measured(
        parts[0].scale, *at, status, reason, seeds, sum(part.n_bad for part in parts), values,
        signs={seed: word for part in parts for seed, word in part.signs.items() if seed in values},
        key=" ".join(part.key for part in parts),
        commit=" ".join(sorted({commit for part in parts for commit in part.commit.split()})),
        shipped=any(part.shipped for part in parts),
        source=" ".join(_unique(part.source for part in parts)),
    )  # fmt: skip


def _unique(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
