"""What a run tells: where it is, how it ended, that it was stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor


class Stopped(Exception):  # noqa: N818 - it is no error
    """A run was told to stop and saved what it has trained."""


@dataclass
class Outcome:
    """What a run gave.

    Attributes:
        status: ``finished`` or ``diverged``.
        reason: why it diverged.
        curve: one row per evaluation.
        clients: one row per evaluation and quantity that the method traces for every client.
        metrics: the last row and, with few clients, mean and variance over devices.
        seconds: of training and evaluation together, all sessions of a resumed run included.
        evaluation_seconds: of each evaluation.
        curve_seconds: of training alone, when each evaluation began; beside the curve, whose bytes are the same always.
        model: the final weights by name, of a finished run that others start from; else those that are reported, of
            one that keeps them.
        predictions: labels [n] and scores [n, C] of each part by those that are reported, of a run that keeps them and
            whose task has scores.
        undefined: why metrics have no number, where that is known.
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
    """Where a run is.

    Attributes:
        round: rounds done.
        rounds: rounds in all.
        begun_at: rounds done when this process began.
        seconds: spent in this process.
        latest: the last row of the curve.
        first: those until the end of its first round, in which libraries warm up and steps are compiled.
    """

    round: int
    rounds: int
    begun_at: int
    seconds: float
    latest: dict[str, float]
    first: float
