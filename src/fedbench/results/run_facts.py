"""What is known of a run when it ends, beside its final metrics: written once, so that no table reads curves for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from fedbench import measures
from fedbench.results import idle
from fedbench.results.pace import pace
from fedbench.specs import TrainSpec
from fedbench.store.record import Facts


def run_facts(
    metrics: Mapping[str, Any], curve: pd.DataFrame, train: TrainSpec, counts: Mapping[str, Iterable[int]]
) -> Facts:
    """Return the facts of a finished run for each of its final metrics that has any.

    ``pace`` is how much the metric still changed at the end (:mod:`~fedbench.results.pace`), ``other`` its value at
    another evaluation than the one that counts, ``sign`` the word for what shows that the run learned nothing
    (:mod:`~fedbench.results.idle`).

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
        if math.isfinite(elsewhere := other(curve, metric, train.select is not None)):
            known["other"] = elsewhere
        if sign := idle.sign(metric, metrics, curve, counts):
            known["sign"] = sign
        if known:
            facts[metric] = known
    return facts


def other(curve: pd.DataFrame, metric: str, selected: bool) -> float:
    """Return a test metric at another evaluation than the one that counts, NaN where there is none.

    At the last one where training selects the best by validation, else at the first that is best by the metric's
    validation counterpart.
    """
    validation = metric.replace("test_", "val_", 1)
    if not metric.startswith("test_") or metric not in curve or curve.empty:
        return math.nan
    if selected:
        return float(curve[metric].iloc[-1])
    if validation not in curve or not curve[validation].notna().all():
        return math.nan
    return float(curve[metric].iloc[int((measures.sign(validation) * curve[validation]).to_numpy().argmax())])
