"""From runs to measurements: what the seeds of a cell give of each metric, or why there is no number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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
from fedbench.results.places import Place
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped
from fedbench.spec import digest
from fedbench.study.cells import Cell

Repeat = int
"""A run of a cell, by its seed."""


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
    first, runs = of_cell[0], dict[Repeat, dict[str, Row]]()
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
            commit=_words((row.commit for row in rows.values()), " "),
            floats_up=floats_up, floats_down=floats_down, samples=samples, seconds=seconds,
            hardware=_words((row.hardware for run in of_ended for row in run.values()), "; "),
            shipped=any(row.origin == SHIPPED for row in rows.values()),
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


def _words(texts: Iterable[str], blank: str) -> str:
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
