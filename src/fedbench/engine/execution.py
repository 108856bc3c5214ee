"""How a run is executed: its speed, its memory, the files that it saves on the way; and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from torch import Tensor

from fedbench.data.inputs import Where


class Stopped(Exception):  # noqa: N818 - it is no error
    """A run was told to stop and saved what it has trained."""


@dataclass
class Outcome:
    """The results of a run.

    Attributes:
        status: ``finished`` or ``diverged``.
        reason: why it diverged.
        curve: one row per evaluation.
        clients: one row per evaluation and traced quantity of the clients.
        metrics: the last row and, with few clients, mean and variance over devices.
        seconds: of training and evaluation together, all sessions of a resumed run included.
        evaluation_seconds: of each evaluation.
        curve_seconds: of training alone, when each evaluation began; not in the curve, whose bytes depend on no time.
        model: weights by name: the final ones if other runs start from this run, else the reported ones if it keeps
            its model.
        predictions: labels [n] and scores [n, C] of each part by the reported weights, if the run keeps its model and
            its task has scores.
        undefined: why metrics have no number, if that is known.
    """

    status: str
    reason: str
    curve: list[dict[str, float]]
    clients: list[dict[str, float | str]]
    metrics: dict[str, float]
    seconds: float
    evaluation_seconds: list[float] = field(default_factory=list)
    curve_seconds: list[float] = field(default_factory=list)
    model: dict[str, Tensor] | None = None
    undefined: dict[str, str] = field(default_factory=dict)
    predictions: dict[str, tuple[np.ndarray, np.ndarray]] | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes:
        round: rounds done.
        rounds: rounds in all.
        begun_at: rounds done when this process began.
        seconds: spent in this process.
        latest: the last row of the curve.
        first: seconds until the end of its first round, in which libraries warm up and steps are compiled.
    """

    round: int
    rounds: int
    begun_at: int
    seconds: float
    latest: dict[str, float]
    first: float


CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a run is executed. ``chunk`` and ``compiling`` change the rounding of results, other fields change no result.

    If a run reports a selected row of its curve, other rounding can select another row, whose AUC differs by .001.

    Attributes:
        chunk: clients stacked in one call, None for all, or ``loop.AUTO`` for the fastest number.
        compiling: compile the local steps; with ``graph`` they are CUDA graphs instead (:mod:`fedbench.engine.replay`).
        inputs: where inputs are kept (:mod:`fedbench.data.inputs`).
        checkpoint: file of the checkpoint while the run is unfinished, None for no checkpoints.
        checkpoint_seconds: seconds between checkpoints; 0 writes one each round.
        on_round: called after each round.
        keep: return the reported weights and the scores of every test and validation sample, too.
        stop: called after each round; if true, the run saves a checkpoint and raises :class:`Stopped`.
    """

    chunk: int | None = 1
    compiling: bool | Literal["graph"] = False
    inputs: Where = "auto"
    checkpoint: Path | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    on_round: Callable[[Progress], None] = lambda progress: None
    keep: bool = False
    stop: Callable[[], bool] = lambda: False
