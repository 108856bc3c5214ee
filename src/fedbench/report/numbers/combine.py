"""Measurements made of others: cells pooled as repeats of one, the average and the slope along an axis of a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedbench.plan.schema import Value
from fedbench.report.numbers.measurement import Cost, Measurement, Repeat
from fedbench.report.numbers.names import AVERAGE, SLOPE
from fedbench.report.numbers.rows import (
    DIVERGED,
    FAILED,
    FINISHED,
    INCOMPLETE,
    NAN,
    NOT_REACHED,
    NOT_RUN,
    UNDEFINED,
)
from fedbench.results.statistics import LEAST, slope

Place = tuple[tuple[str, Value], ...]
"""Where a number stands: (axis, value) for dataset, every setting, and method."""
Measured = Mapping[tuple[Place, str], Measurement]
"""Measurements by place and metric."""


def pool(measured: Measured, settings: Sequence[str]) -> dict[tuple[Place, str], Measurement]:
    """Take cells that differ in ``settings`` alone as repeats of one, which stands at the place without them."""
    groups: dict[tuple[Place, str], list[Measurement]] = {}
    for (place, metric), one in measured.items():
        rest = tuple((axis, value) for axis, value in place if axis not in settings)
        groups.setdefault((rest, metric), []).append(one)
    return {key: pooled(parts, settings) for key, parts in groups.items()}


def pooled(parts: Sequence[Measurement], settings: Sequence[str]) -> Measurement:
    """Join the runs of several measurements of one metric; a run is called by its ``settings`` and its seed."""
    values, paces, signs = dict[Repeat, float](), dict[Repeat, float](), dict[Repeat, str]()
    for part in parts:
        where = " ".join(f"{name}{part.setting[name]}" for name in settings)
        values |= {f"{where} seed{seed}": value for seed, value in part.values.items()}
        paces |= {f"{where} seed{seed}": pace for seed, pace in part.paces.items()}
        signs |= {f"{where} seed{seed}": word for seed, word in part.marked.items()}
    wanted = sum(part.n_wanted for part in parts)
    setting = {name: value for name, value in parts[0].setting.items() if name not in settings}
    return replace(joined(parts, values, wanted), setting=setting, paces=paces, signs=signs)


def averages(measured: Measured, axis: str, values: Sequence[Value]) -> dict[tuple[Place, str], Measurement]:
    """Return the averages over ``values`` of an axis, at the place that calls its value :data:`AVERAGE`."""
    groups = _along(measured, axis, values, AVERAGE)
    return {key: averaged(parts, axis, len(values)) for key, parts in groups.items()}


def averaged(parts: Sequence[Measurement], axis: str, wanted: int) -> Measurement:
    """Average measurements of one metric seed by seed, so that the spread is that of the average over seeds.

    Only seeds that all parts have count. Without all of the ``wanted`` parts there is nothing to compare: the status
    is ``not run``.
    """
    values = {seed: float(np.mean(each)) for seed, each in _by_seed(parts).items()}
    if len(parts) < wanted:
        result = replace(
            joined(parts, {}, 0), status=NOT_RUN, reason=f"only {len(parts)} of its {wanted} values are run"
        )
    else:
        result = joined(parts, values, max(part.n_wanted for part in parts))
    paces = {seed: float(np.mean(each)) for seed, each in _by_seed(parts, "paces").items()}
    result = replace(result, paces=paces)
    if axis == "dataset":
        return replace(result, dataset=AVERAGE)
    return replace(result, setting={**parts[0].setting, axis: AVERAGE})


def slopes(measured: Measured, axis: str, values: Sequence[Value]) -> dict[tuple[Place, str], Measurement]:
    """Return the slopes over ``values`` of a setting, at the place that calls its value :data:`SLOPE`.

    A method that stands at fewer than three of them has none.
    """
    groups = _along(measured, axis, values, SLOPE)
    return {key: sloped(parts, axis, len(values)) for key, parts in groups.items() if len(parts) >= LEAST}


def sloped(parts: Sequence[Measurement], axis: str, wanted: int) -> Measurement:
    """Fit the slope of log value over log setting seed by seed, so that its spread is that over seeds.

    Only seeds that all parts have count. What was not reached somewhere has no slope, nor has a number that is not
    positive.
    """
    x = [float(part.setting[axis]) for part in parts]
    fits = {seed: slope(x, each) for seed, each in _by_seed(parts).items()}
    values = {seed: fit for seed, fit in fits.items() if math.isfinite(fit)}
    result = joined(parts, values, max(part.n_wanted for part in parts))
    if len(parts) < wanted:
        reason = f"only {len(parts)} of its {wanted} values are run"
        result = replace(joined(parts, {}, 0), status=NOT_RUN, reason=reason)
    elif fits and not values and result.status == NOT_RUN:
        result = replace(result, status=UNDEFINED, reason="a slope of logarithms takes positive numbers")
    return replace(result, setting={**parts[0].setting, axis: SLOPE})


def _along(
    measured: Measured, axis: str, values: Sequence[Value], name: str
) -> dict[tuple[Place, str], list[Measurement]]:
    """Group what differs in ``axis`` alone, at the place that calls the axis's value ``name``."""
    groups: dict[tuple[Place, str], list[Measurement]] = {}
    for (place, metric), one in measured.items():
        if dict(place)[axis] in values:
            there = tuple((each, name if each == axis else value) for each, value in place)
            groups.setdefault((there, metric), []).append(one)
    return groups


def _by_seed(parts: Sequence[Measurement], what: str = "values") -> dict[Repeat, list[float]]:
    """Return the values, or paces, of the parts for each seed that all of them have."""
    numbers = [getattr(part, what) for part in parts]
    return {seed: [of[seed] for of in numbers] for seed in numbers[0] if all(seed in of for of in numbers)}


def joined(parts: Sequence[Measurement], values: Mapping[Repeat, float], wanted: int) -> Measurement:
    """Return what several measurements give together: the worst status among them decides."""
    status, reason = FINISHED, ""
    troubled = [
        word for word in (DIVERGED, FAILED, UNDEFINED, NOT_REACHED) if any(p.status == word for p in parts)
    ]
    if troubled:
        status = troubled[0]
        bad = [part for part in parts if part.status == status]
        reason = f"{len(bad)} of {len(parts)} cells: {'; '.join(_each(part.reason for part in bad))}"
    elif not values:
        status, reason = NOT_RUN, "; ".join(_each(part.reason for part in parts))
    elif len(values) < wanted:
        status, reason = INCOMPLETE, f"{len(values)} of {wanted} runs are done"
    return replace(
        parts[0],
        status=status,
        reason=reason,
        values=values,
        n_wanted=wanted,
        n_bad=sum(part.n_bad for part in parts),
        commit=" ".join(sorted(set(itertools.chain(*(part.commit.split() for part in parts))))),
        device_mean=NAN,
        device_variance=NAN,
        key=" ".join(part.key for part in parts),
        cost=Cost(),
        paces={},
        source=" ".join(_each(part.source for part in parts)),
        shipped=any(part.shipped for part in parts),
        again=all(part.again for part in parts),
        signs={seed: word for part in parts for seed, word in part.marked.items() if seed in values},
    )


def _each(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
