"""Does this machine, this PyTorch or this re-implementation converge like ours? A test against shipped runs."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from fedbench.errors import UserError, unknown
from fedbench.jobs.training import train_run
from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.statistics import LEVEL, POWER, ROUNDING, holm
from fedbench.store.runs import Store

PAPER, TABLE, SCALE, METRIC = "check", "table1", "demo", "test_auc"
DIGITS = 1e-6
"""Up to which two values are called equal: shipped ones have six digits."""


@dataclass(frozen=True)
class Point:
    """One reference cell: what it gave here and where its numbers are from, by seed; NaN where a run diverged."""

    name: str
    trained: Mapping[int, float]
    reference: Mapping[int, float]

    @property
    def p(self) -> float:
        """The p-value of "it is not worse here": one-sided, Welch; 0 where a run diverged.

        Seeds in common make it the more careful: their partitions and batches are the same.
        """
        mine, ours = (np.array(list(side.values())) for side in (self.trained, self.reference))
        if np.isnan(mine).any():
            return 0.0
        if max(mine.std(), ours.std()) <= ROUNDING:
            return float(mine.mean() >= ours.mean() - ROUNDING)
        return float(stats.ttest_ind(mine, ours, equal_var=False, alternative="less").pvalue)

    @property
    def equal(self) -> int:
        """How many seeds gave the same value to six digits."""
        shared = (seed for seed in self.trained if seed in self.reference)
        return sum(abs(self.trained[seed] - self.reference[seed]) <= DIGITS for seed in shared)

    @property
    def detectable(self) -> float:
        """The loss that is found with power 0.8, if runs here spread as much as there."""
        n, m = len(self.trained), len(self.reference)
        spread = float(np.std(list(self.reference.values()), ddof=1)) * math.sqrt(1 / n + 1 / m)
        return spread * float(stats.t.isf(LEVEL, n + m - 2) + stats.t.ppf(POWER, n + m - 2))


def compared(points: Sequence[Point]) -> tuple[list[str], bool]:
    """Return a line for each point and one for all, and whether none is worse here (level 0.05, Holm)."""
    corrected = holm(np.array([point.p for point in points]))
    lines = []
    for point, p in zip(points, corrected, strict=True):
        sides = [
            f"{np.mean(values):.4f}" + (f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")
            for values in (list(point.trained.values()), list(point.reference.values()))
        ]
        word = "worse" if p <= LEVEL else "like ours"
        same = f"{point.equal} of {len(point.trained)} seeds equal to six digits"
        lines.append(
            f"{point.name}: {word}: {sides[0]} here, {sides[1]} there, p = {p:.3f}; {same}; "
            f"a loss of {point.detectable:.4f} would be found"
        )
    good = bool((corrected > LEVEL).all())
    lines.append("converges like ours" if good else "does not converge like ours")
    return lines, good


def check(config: Config, wanted: Sequence[str], seeds: int) -> Iterator[Point]:
    """Train reference cells anew, in a store that is thrown away, and yield each with the shipped runs of it.

    Args:
        config: where data and the device are; scale and paper are the check's own.
        wanted: names of cells, all if empty; ``FedAvg=my_fedavg`` puts another algorithm in a cell's place.
        seeds: how many, from 0.

    Raises:
        UserError: a name is unknown, or there are no shipped runs under the keys of today.
    """
    if seeds < 2:
        raise UserError(f"check: {seeds} seed is no sample to test; give --seeds 2 or more")
    config = config.model_copy(
        update={"paper": PAPER, "scale": SCALE, "seeds": [*range(seeds)], "shipped": True}
    )
    plan = Plan(config)
    cells, shipped = {cell.method: cell for cell in plan.cells(TABLE)}, Shipped(plan)
    asked = dict(name.partition("=")[::2] for name in wanted or cells)
    if strange := [name for name in asked if name not in cells]:
        raise unknown("reference cell", strange[0], cells)
    references = {name: _reference(shipped, cells[name]) for name in asked}
    with tempfile.TemporaryDirectory() as folder:
        for name, algorithm in asked.items():
            by_seed = {}
            for run in cells[name].runs:
                spec = run.model_copy(update={"method": algorithm}) if algorithm else run
                record = train_run(spec, config, Store(Path(folder)))
                value = record.metrics.get(METRIC) if record.status == "finished" else None
                by_seed[run.seed] = math.nan if value is None else float(value)
            yield Point(f"{name} as {algorithm}" if algorithm else name, by_seed, references[name])


def _reference(shipped: Shipped, cell: Cell) -> dict[int, float]:
    runs = shipped.runs(cell)
    by_seed = {seed: run[METRIC].value for seed, run in runs.items() if METRIC in run}
    if len(by_seed) < 2:
        raise UserError(
            f"no shipped runs of {cell.name} under reproduced/{SCALE}/{PAPER} fit the configuration; "
            "bring config/papers/arena.yaml and check.yaml back to what the repository has"
        )
    return by_seed
