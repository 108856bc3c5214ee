"""The reports of a run: its progress, its outcome, and that it was stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor


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
