"""What the seeds of a cell give of each metric, or why there is no number; averages and slopes over cells."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import SupportsFloat

import numpy as np

from fedbench import metric_table
from fedbench.results import run_facts
from fedbench.results.frame import (
    COSTS,
    DIVERGED,
    FAILED,
    FINISHED,
    HERE,
    INCOMPLETE,
    NAN,
    NOT_REACHED,
    NOT_RUN,
    SHIPPED,
    UNDEFINED,
    Measured,
    Row,
    device_metrics,
)
from fedbench.results.names import AVERAGE, SLOPE
from fedbench.results.places import Place
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped
from fedbench.results.statistics import LEAST, slope
from fedbench.spec import digest
from fedbench.study.cells import Cell
from fedbench.study.schema import Value

Groups = Iterable[tuple[tuple[Place, str, str], list[Measured]]]
"""Places, methods and metrics with the measurements that something is made of there."""


def measure_cells(
    cells: Sequence[Cell], metrics: Sequence[str], shipped: Shipped | None = None
) -> list[Measured]:
    """Return a measurement for each cell and metric, cell after cell; see :func:`runs_of_cells`."""
    return measurements(runs_of_cells(cells, metrics, shipped), metrics)


def measurements(runs: Iterable[Row], metrics: Sequence[str]) -> list[Measured]:
    """Return a measurement for each cell of some runs and each metric, cell after cell.

    The seeds that are wanted are those of the configuration; of a cell without any run of this machine, those that
    were shipped. No mean is taken over a part of the seeds unless it says so.
    """
    cells: dict[tuple[str, Place, str], list[Row]] = {}
    for row in runs:
        cells.setdefault((row.scale, row.place, row.method), []).append(row)
    return [summarised(one) for rows in cells.values() for one in _of_cell(rows, metrics)]


def summarised(row: Measured) -> Measured:
    """Return a measurement with what follows from the values of its seeds."""
    paces = [*row.paces.values()]
    known = [*row.values.values()] if row.status in (FINISHED, INCOMPLETE) else []
    signs = {**row.signs} | {
        seed: run_facts.CONSTANT
        for seed, value in row.values.items()
        if run_facts.constant(row.metric, value)
    }
    seeds = {word: [seed for seed in signs if signs[seed] == word] for word in run_facts.MEANING}
    return replace(
        row,
        n_seeds=len(row.values),
        mean=float(np.mean(known)) if known else NAN,
        std=float(np.std(known, ddof=1)) if len(known) > 1 else NAN,
        pace=float(np.mean(paces)) if paces else NAN,
        signs=signs,
        idle={word: of_word for word, of_word in seeds.items() if of_word},
    )


def _of_cell(of_cell: Sequence[Row], metrics: Sequence[str]) -> Iterator[Measured]:
    """Yield the measurements of a cell, of the rows of its runs."""
    first, runs = of_cell[0], dict[int, dict[str, Row]]()
    for row in of_cell:
        if row.origin:
            runs.setdefault(row.seed, {})[row.metric] = row
    lacking = next((row for row in of_cell if not row.origin), None)
    trained = any(row.origin == HERE for row in of_cell)
    for metric in metrics:
        rows = {seed: run.get("") or run[metric] for seed, run in runs.items() if "" in run or metric in run}
        local = trained or not rows
        ended = {seed: row for seed, row in rows.items() if row.status not in (DIVERGED, FAILED)}
        n_wanted = first.planned if local else len(rows)
        status, reason = _status(metric, [*rows.values()], n_wanted, lacking)
        of_ended = [runs[seed] for seed in ended]
        floats_up, floats_down, samples, seconds = (
            _mean(run.get(name) for run in of_ended) for name in COSTS
        )
        devices = [_mean(run.get(name) for run in of_ended) for name in device_metrics(metric)]
        yield Measured(
            scale=first.scale, place=first.place, method=first.method, metric=metric,
            status=status, reason=reason, n_wanted=n_wanted, n_bad=len(rows) - len(ended),
            values={seed: row.value for seed, row in ended.items()},
            signs={seed: row.sign for seed, row in ended.items() if row.sign},
            paces={seed: row.pace for seed, row in ended.items() if math.isfinite(row.pace)},
            device_mean=devices[0], device_variance=devices[1],
            key=first.cell if local else key_of([row.key for row in rows.values()]),
            commit=_words(row.commit for row in rows.values()),
            floats_up=floats_up, floats_down=floats_down, samples=samples, seconds=seconds,
            hardware=_words((row.hardware for run in of_ended for row in run.values()), "; "),
            shipped=any(row.origin == SHIPPED for row in rows.values()),
            trained=any(row.origin == HERE for row in rows.values()),
            source=_sources(row.source for row in rows.values()),
        )  # fmt: skip


def _status(metric: str, rows: Sequence[Row], n_wanted: int, lacking: Row | None) -> tuple[str, str]:
    """Return what is to be said of a cell's metric, and why if that is not ``finished``."""
    for status in (DIVERGED, FAILED):
        if bad := [row for row in rows if row.status == status]:
            reasons = sorted({row.reason or "no reason recorded" for row in bad})
            count = f"{len(bad)} of {n_wanted} seeds" if n_wanted > 1 else "the only seed"
            return status, f"{count}: {'; '.join(reasons)}"
    missing = lacking.reason if lacking is not None else ""
    if not rows:
        return (NOT_RUN if lacking is None else lacking.status), missing
    if all(row.status == UNDEFINED for row in rows):
        return UNDEFINED, rows[0].reason
    if metric_table.target(metric) and (short := [row for row in rows if row.value == math.inf]):
        count = f"{len(short)} of {len(rows)} seeds: " if len(rows) > 1 else ""
        return NOT_REACHED, f"{count}{'; '.join(row.reason for row in short)}"
    if {row.sign for row in rows} == {run_facts.NO_MODEL}:
        return UNDEFINED, run_facts.NO_MODEL
    if undefined := [str(row.seed) for row in rows if not math.isfinite(row.value)]:
        if "_auc@" in metric and len(undefined) == len(rows):
            return UNDEFINED, f"no AUC: one class in {metric.partition('_')[0]}"
        return UNDEFINED, f"{metric} has no finite value for seed {', '.join(undefined)}"
    if len(rows) < n_wanted:
        count = f"{len(rows)} of {n_wanted} seeds are done"
        return INCOMPLETE, f"{count}; {missing}" if missing else count
    return FINISHED, ""


def _mean(rows: Iterable[Row | None]) -> float:
    """Return the mean of the numbers that are known, NaN where none is."""
    known = [row.value for row in rows if row is not None and math.isfinite(row.value)]
    return float(np.mean(known)) if known else NAN


def key_of(keys: Sequence[str]) -> str:
    """Return the digest of the keys of runs; of runs that several cells have in common one for each cell."""
    return " ".join(digest([*runs]) for runs in zip(*(key.split() for key in keys), strict=True))


def _words(texts: Iterable[str], blank: str = " ") -> str:
    return blank.join(sorted({word for text in texts for word in text.split(blank) if word}))


def _sources(sources: Iterable[str]) -> str:
    """Return the files that runs were read from; of one with lines the first and the last."""
    lines: dict[str, list[str]] = {}
    for path, _, line in (source.partition(":") for source in sources if source):
        lines.setdefault(path, []).append(line)
    return " ".join(
        f"{path}:{'-'.join(dict.fromkeys((of_path[0], of_path[-1])))}" if of_path[0] else path
        for path, of_path in lines.items()
    )


def pool(numbers: Sequence[Measured], settings: Sequence[str], wanted: int) -> list[Measured]:
    """Return the averages of ``wanted`` cells that differ in ``settings`` alone, at the place without these.

    They are taken as :func:`averages` are: a spread over seeds holds no difference between settings, and there are as
    many repeats as seeds.
    """
    return _averaged(
        _grouped(numbers, lambda place: tuple(pair for pair in place if pair[0] not in settings)), wanted
    )


def averages(numbers: Sequence[Measured], axis: str, values: Sequence[Value]) -> list[Measured]:
    """Return the averages over ``values`` of an axis, at the place that calls its value :data:`AVERAGE`.

    They are taken seed by seed, so that the spread is that of the average over seeds; only seeds that all parts have
    count. Without all parts there is nothing to compare: the status is ``not run``.
    """
    return _averaged(along(numbers, axis, values, AVERAGE), len(values))


def _averaged(groups: Groups, wanted: int) -> list[Measured]:
    rows = []
    for at, parts in groups:
        row = together(at, parts, by_seed([part.values for part in parts], np.mean), wanted)
        rows.append(summarised(replace(row, paces=by_seed([part.paces for part in parts], np.mean))))
    return rows


def slopes(numbers: Sequence[Measured], axis: str, values: Sequence[Value]) -> list[Measured]:
    """Return the slopes of log value over log setting, at the place that calls the setting's value :data:`SLOPE`.

    They are fitted seed by seed, to seeds that all parts have. What was not reached somewhere has no slope, nor has a
    number that is not positive; a method that stands at fewer than three of the ``values`` has none.
    """
    rows = []
    for at, parts in along(numbers, axis, values, SLOPE):
        if len(parts) < LEAST:
            continue
        x = [float(dict(part.place)[axis]) for part in parts]
        fits = by_seed([part.values for part in parts], functools.partial(slope, x))
        known = {seed: fit for seed, fit in fits.items() if math.isfinite(fit)}
        row = together(at, parts, known, len(values))
        if len(parts) >= len(values) and fits and row.status == NOT_RUN:
            row.status, row.reason = UNDEFINED, "a slope of logarithms takes positive numbers"
        rows.append(summarised(row))
    return rows


def by_seed(
    parts: Sequence[Mapping[int, float]], made_of: Callable[[list[float]], SupportsFloat]
) -> dict[int, float]:
    """Return what is ``made_of`` the numbers of several parts for each seed that all of them have."""
    seeds = [seed for seed in parts[0] if all(seed in part for part in parts)]
    return {seed: float(made_of([part[seed] for part in parts])) for seed in seeds}


def along(numbers: Sequence[Measured], axis: str, values: Sequence[Value], name: str) -> Groups:
    """Group what differs in ``axis`` alone, at the place that calls the axis's value ``name``."""
    chosen = [number for number in numbers if dict(number.place)[axis] in values]
    return _grouped(chosen, lambda place: tuple((a, name if a == axis else value) for a, value in place))


def _grouped(numbers: Iterable[Measured], place_of: Callable[[Place], Place]) -> Groups:
    groups: dict[tuple[Place, str, str], list[Measured]] = {}
    for part in numbers:
        groups.setdefault((place_of(part.place), part.method, part.metric), []).append(part)
    return groups.items()


def together(
    at: tuple[Place, str, str], parts: Sequence[Measured], values: Mapping[int, float], wanted: int
) -> Measured:
    """Return what ``wanted`` measurements give together, which is not run where some of them lack.

    The worst status among them decides.
    """
    status, reason, seeds = FINISHED, "", max(part.n_wanted for part in parts)
    worst = next((s for s in (DIVERGED, FAILED, UNDEFINED, NOT_REACHED) for p in parts if p.status == s), "")
    scales = _unique(part.scale for part in parts)
    if len(parts) < wanted or len(scales) > 1:
        status, reason = NOT_RUN, f"its values are of different scales: {', '.join(scales)}"
        if len(parts) < wanted:
            reason = f"only {len(parts)} of its {wanted} values are run"
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
        commit=_words(part.commit for part in parts),
        shipped=any(part.shipped for part in parts),
        trained=any(part.trained for part in parts),
        source=" ".join(_unique(part.source for part in parts)),
    )  # fmt: skip


def _unique(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
