"""Measurements made of others: cells pooled as repeats of one, the average and the slope along an axis of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
    groups = _grouped(measured, lambda place: tuple(pair for pair in place if pair[0] not in settings))
    return {at: pooled(parts, settings) for at, parts in groups.items()}


def averages(measured: Measured, axis: str, values: Sequence[Value]) -> dict[tuple[Place, str], Measurement]:
    """Return the averages over ``values`` of an axis, at the place that calls its value :data:`AVERAGE`."""
    groups = _along(measured, axis, values, AVERAGE)
    return {at: averaged(parts, axis, len(values)) for at, parts in groups.items()}


def slopes(measured: Measured, axis: str, values: Sequence[Value]) -> dict[tuple[Place, str], Measurement]:
    """Return the slopes over ``values`` of a setting, at the place that calls its value :data:`SLOPE`.

    A method that stands at fewer than three of them has none.
    """
    groups = _along(measured, axis, values, SLOPE)
    return {at: sloped(parts, axis, len(values)) for at, parts in groups.items() if len(parts) >= LEAST}


def pooled(parts: Sequence[Measurement], settings: Sequence[str]) -> Measurement:
    """Join the runs of several measurements of one metric; a run is called by its ``settings`` and its seed."""
    names = [" ".join(f"{name}{part.setting[name]}" for name in settings) for part in parts]

    def of_runs(what: str) -> dict[Repeat, Any]:
        of_parts = zip(names, (getattr(part, what) for part in parts), strict=True)
        return {f"{name} seed{seed}": value for name, of_part in of_parts for seed, value in of_part.items()}

    result = _together(parts, of_runs("values"), sum(part.n_wanted for part in parts))
    setting = {name: value for name, value in parts[0].setting.items() if name not in settings}
    return replace(result, setting=setting, paces=of_runs("paces"), signs=of_runs("marked"))


def averaged(parts: Sequence[Measurement], axis: str, wanted: int) -> Measurement:
    """Average measurements of one metric seed by seed, so that the spread is that of the average over seeds.

    Only seeds that all parts have count. Without all of the ``wanted`` parts there is nothing to compare: the status
    is ``not run``.
    """
    values, paces = (
        by_seed([getattr(part, what) for part in parts], np.mean) for what in ("values", "paces")
    )
    result = replace(_of_all(parts, values, wanted), paces=paces)
    if axis == "dataset":
        return replace(result, dataset=AVERAGE)
    return replace(result, setting={**parts[0].setting, axis: AVERAGE})


def sloped(parts: Sequence[Measurement], axis: str, wanted: int) -> Measurement:
    """Fit the slope of log value over log setting seed by seed, so that its spread is that over seeds.

    Only seeds that all parts have count. What was not reached somewhere has no slope, nor has a number that is not
    positive.
    """
    x = [float(part.setting[axis]) for part in parts]
    fits = by_seed([part.values for part in parts], lambda y: slope(x, y))
    values = {seed: fit for seed, fit in fits.items() if math.isfinite(fit)}
    result = _of_all(parts, values, wanted)
    if len(parts) >= wanted and fits and not values and result.status == NOT_RUN:
        result = replace(result, status=UNDEFINED, reason="a slope of logarithms takes positive numbers")
    return replace(result, setting={**parts[0].setting, axis: SLOPE})


def _along(
    measured: Measured, axis: str, values: Sequence[Value], name: str
) -> dict[tuple[Place, str], list[Measurement]]:
    """Group what differs in ``axis`` alone, at the place that calls the axis's value ``name``."""
    chosen = {at: one for at, one in measured.items() if dict(at[0])[axis] in values}
    return _grouped(chosen, lambda place: tuple((a, name if a == axis else value) for a, value in place))


def _grouped(
    measured: Measured, place_of: Callable[[Place], Place]
) -> dict[tuple[Place, str], list[Measurement]]:
    groups: dict[tuple[Place, str], list[Measurement]] = {}
    for (place, metric), one in measured.items():
        groups.setdefault((place_of(place), metric), []).append(one)
    return groups


def by_seed(
    parts: Sequence[Mapping[Repeat, float]], made_of: Callable[[list[float]], Any]
) -> dict[Repeat, float]:
    """Return what is ``made_of`` the numbers of several parts for each seed that all of them have."""
    seeds = [seed for seed in parts[0] if all(seed in part for part in parts)]
    return {seed: float(made_of([part[seed] for part in parts])) for seed in seeds}


def _of_all(parts: Sequence[Measurement], values: Mapping[Repeat, float], wanted: int) -> Measurement:
    """Return what is made of ``wanted`` parts, which is not run where some of them lack."""
    if len(parts) < wanted:
        reason = f"only {len(parts)} of its {wanted} values are run"
        return replace(_together(parts, {}, 0), status=NOT_RUN, reason=reason)
    return _together(parts, values, max(part.n_wanted for part in parts))


def _together(parts: Sequence[Measurement], values: Mapping[Repeat, float], wanted: int) -> Measurement:
    """Return what several measurements give together: the worst status among them decides."""
    status, reason = FINISHED, ""
    worst = next((s for s in (DIVERGED, FAILED, UNDEFINED, NOT_REACHED) for p in parts if p.status == s), "")
    if worst:
        bad = [part.reason for part in parts if part.status == worst]
        status, reason = worst, f"{len(bad)} of {len(parts)} cells: {'; '.join(_unique(bad))}"
    elif not values:
        status, reason = NOT_RUN, "; ".join(_unique(part.reason for part in parts))
    elif len(values) < wanted:
        status, reason = INCOMPLETE, f"{len(values)} of {wanted} runs are done"
    return replace(
        parts[0],
        status=status,
        reason=reason,
        values=values,
        n_wanted=wanted,
        n_bad=sum(part.n_bad for part in parts),
        commit=" ".join(sorted({commit for part in parts for commit in part.commit.split()})),
        device_mean=NAN,
        device_variance=NAN,
        key=" ".join(part.key for part in parts),
        cost=Cost(),
        paces={},
        source=" ".join(_unique(part.source for part in parts)),
        shipped=any(part.shipped for part in parts),
        again=all(part.again for part in parts),
        signs={seed: word for part in parts for seed, word in part.marked.items() if seed in values},
    )


def _unique(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
