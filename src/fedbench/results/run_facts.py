"""What is known of a run when it ends, beside its final metrics: written once, so that no table reads curves for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from fedbench.results import degenerate_runs
from fedbench.spec import TrainSpec
from fedbench.store.record import Facts

PARTS = 5
"""The pace is the change in a fifth of a training: as long again at that pace is five of them."""
WINDOW = 2 / PARTS
"""The end of a training that it is fitted to."""
FEWEST = 3
"""Evaluations there; with fewer the pace is not known."""
ROUNDING = 1e-9


def run_facts(
    metrics: Mapping[str, float | None],
    curve: pd.DataFrame,
    train: TrainSpec,
    counts: Mapping[str, Iterable[int]],
) -> Facts:
    """Return the facts of a finished run for each of its final metrics that has any.

    ``pace`` is how much the metric still changed at the end (:func:`pace`), ``sign`` the word for
    what shows that the run learned nothing
    (:mod:`~fedbench.results.degenerate_runs`).

    Args:
        metrics: final metrics by name, None where one is undefined.
        curve: a row for each evaluation, a column for each metric.
        train: how it was trained.
        counts: samples of each class in a part of the data (``test``, ``val``), where they are known.
    """
    facts: Facts = {}
    for metric in metrics:
        known: dict[str, float | str] = {}
        if math.isfinite(speed := pace(curve, metric, train.decay_at)):
            known["pace"] = speed
        if sign := degenerate_runs.sign(metric, metrics, curve, counts):
            known["sign"] = sign
        if known:
            facts[metric] = known
    return facts


def pace(curve: pd.DataFrame, metric: str, decays: Sequence[float] = ()) -> float:
    """Return by how much a metric changed in the last fifth of a training; NaN where it is not known.

    It tells whether training was long enough: the slope of a least-squares line through the evaluations of the last two
    fifths. Where step sizes fall, a training is the part of the run before they first do: after it a curve is flat
    because the steps are small.

    Args:
        curve: a run's evaluations, a row each, with the column ``iteration``.
        metric: the column that is looked at.
        decays: shares of the run after which step sizes fell, ascending.
    """
    if metric not in curve or "iteration" not in curve or curve.empty:
        return math.nan
    full, iterations = decays[0] if decays else 1.0, curve["iteration"].to_numpy()
    share = iterations / (full * iterations[-1])
    late = (share >= 1 - WINDOW - ROUNDING) & (share <= 1 + ROUNDING)
    x, y = share[late], curve[metric].to_numpy()[late]
    if len(y) < FEWEST or not np.isfinite(y).all():
        return math.nan
    return float(np.polyfit(x, y, 1)[0]) / PARTS
