"""One number of our own: a metric of a cell over its seeds, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedbench.plan.schema import Value
from fedbench.report.files import REPRODUCED
from fedbench.report.numbers.rows import FINISHED, INCOMPLETE, NAN, NOT_RUN
from fedbench.results import idle

Repeat = int | str
"""A run of a cell: its seed, or where several cells are pooled, a word that has the seed in it."""


@dataclass(frozen=True)
class Cost:
    """What a run of a cell costs, the mean over its seeds; NaN or empty where it was not noted.

    Attributes:
        floats_up: numbers that a client sends to the server.
        floats_down: numbers that it receives.
        samples: samples that all clients draw.
        seconds: training and evaluation together.
        hardware: what it ran on.
        equal_costs: which of the numbers all seeds share, so that they are each seed's, separated by blanks.
    """

    floats_up: float = NAN
    floats_down: float = NAN
    samples: float = NAN
    seconds: float = NAN
    hardware: str = ""
    equal_costs: str = ""


@dataclass(frozen=True)
class Measurement:
    """A metric of a cell.

    Attributes:
        paper: whose cell it is.
        scale: at which scale.
        dataset: the cell's dataset, by the paper's label.
        setting: the cell's setting.
        method: the cell's method, by the paper's label.
        metric: what was measured.
        status: one of the words above; only ``finished`` (all wanted seeds) and ``incomplete`` have a mean.
        reason: why the status is not ``finished``.
        values: the metric of each run that ended, by its seed; NaN where it is undefined, infinite where the target of
            ``rounds_to`` was not reached.
        n_wanted: how many seeds the configuration asks for.
        n_bad: how many diverged or failed.
        diverged: the seeds of those that diverged.
        commit: the commits of the code that made the runs, separated by blanks.
        device_mean: mean over seeds of the mean over the devices' own models, NaN where it was not measured.
        device_variance: likewise of the variance over devices.
        key: the cell's key, a digest of all that decides its runs.
        cost: what its runs cost.
        shipped: whether it, or some of its seeds, came with the repository, under ``reproduced/``.
        again: whether every run of a shipped number was trained again with the same (:mod:`verified`).
        source: the files that its runs were read from, with the lines of those that came with the repository, separated
            by blanks.
        signs: by its seed, the word of :mod:`idle` for what shows that a run learned nothing.
        paces: by its seed, how much the metric still changed in a fifth of the run when it ended (:mod:`pace`), where
            its curve says so.
    """

    paper: str
    scale: str
    dataset: str
    setting: Mapping[str, Value]
    method: str
    metric: str
    status: str = NOT_RUN
    reason: str = ""
    values: Mapping[Repeat, float] = field(default_factory=dict)
    n_wanted: int = 0
    n_bad: int = 0
    diverged: tuple[Repeat, ...] = ()
    commit: str = ""
    device_mean: float = NAN
    device_variance: float = NAN
    key: str = ""
    cost: Cost = Cost()
    shipped: bool = False
    again: bool = False
    source: str = ""
    signs: Mapping[Repeat, str] = field(default_factory=dict)
    paces: Mapping[Repeat, float] = field(default_factory=dict)

    @property
    def place(self) -> tuple[tuple[str, Value], ...]:
        """Where it stands: (axis, value) for dataset, every setting, and method."""
        return (("dataset", self.dataset), *self.setting.items(), ("method", self.method))

    @property
    def partly(self) -> bool:
        """Whether some of its seeds were trained here and others came with the repository."""
        return self.shipped and not all(part.startswith(str(REPRODUCED)) for part in self.source.split())

    @property
    def n_seeds(self) -> int:
        """How many runs ended as they should."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over the seeds there are, NaN unless finished or incomplete."""
        if self.status not in (FINISHED, INCOMPLETE):
            return NAN
        return float(np.mean(list(self.values.values())))

    @property
    def std(self) -> float:
        """The standard deviation over the seeds there are (ddof 1), NaN for one seed or without a mean."""
        if math.isnan(self.mean) or self.n_seeds < 2:
            return NAN
        return float(np.std(list(self.values.values()), ddof=1))

    @property
    def marked(self) -> dict[Repeat, str]:
        """The word for what shows that a run learned nothing, by its seed; an AUC of 0.5 shows it without a curve."""
        found = {
            seed: idle.CONSTANT for seed, value in self.values.items() if idle.constant(self.metric, value)
        }
        return {**self.signs, **found}

    @property
    def idle(self) -> dict[str, list[Repeat]]:
        """The seeds that learned nothing, by the word for what shows it."""
        words = self.marked
        return {word: seeds for word in idle.MEANING if (seeds := [s for s in words if words[s] == word])}

    @property
    def values_text(self) -> str:
        """The value of each seed as ``0:0.9786 1:0.9791``."""
        return _by_seed(self.values)

    @property
    def pace(self) -> float:
        """How much the metric still changed in a fifth of a run, the mean over seeds; NaN where it is not known."""
        return float(np.mean(list(self.paces.values()))) if self.paces else NAN

    @property
    def paces_text(self) -> str:
        """The pace of each seed, as :attr:`values_text`."""
        return _by_seed(self.paces)


def _by_seed(values: Mapping[Repeat, float]) -> str:
    return " ".join(f"{seed}:{value:.6g}" for seed, value in values.items())
