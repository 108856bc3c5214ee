"""What is known of a run when it ends, beside its final metrics: how fast they changed, and whether it learned.

It is written once, so that no table reads curves for it, and no mean hides a run that learned nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench.data.partition import read_facts
from fedbench.errors import UserError
from fedbench.results.statistics import ROUNDING
from fedbench.spec import RunSpec, TrainSpec
from fedbench.store.record import Facts

PARTS = 5
"""The pace is the change in a fifth of a training: as long again at that pace is five of them."""
WINDOW = 2 / PARTS
"""The end of a training that it is fitted to."""
FEWEST = 3
"""Evaluations there; with fewer the pace is not known."""
CONSTANT, REVERSED, ONE_CLASS, FLAT = "constant", "reversed", "one class", "flat"
NO_MODEL = "no AUC: one class in training"
"""What a run says of a site whose own model would have nothing to tell apart."""
STILL = 3
"""So many evaluations that are the same to the last digit, and nothing moves."""
MEANING = {
    CONSTANT: "constant scores, so an AUC of exactly 0.5: nothing was learned",
    REVERSED: "AUC below 0.5 on the training data: the reverse of what is asked was learned",
    ONE_CLASS: "exactly the accuracy of predicting one class for all samples: nothing was learned",
    FLAT: "the same to the last digit at every evaluation: nothing was learned",
}
"""What each word in a cell means, in the order in which they are looked for."""
OF_PARTITION = {"test": "test", "val": "validation"}
"""What a partition calls the part that a metric is measured on."""
OF_RANKS = ("auc", "ap", "sensitivity_at")
"""How metrics begin that are made of the order of scores."""
OF_SCORES = (*OF_RANKS, "loss", "gradient_norm")
"""How metrics begin that are made of scores: which class is predicted says nothing of them."""


def run_facts(
    metrics: Mapping[str, float | None],
    curve: pd.DataFrame,
    train: TrainSpec,
    counts: Mapping[str, Iterable[int]],
) -> Facts:
    """Return the facts of a finished run for each of its final metrics that has any.

    ``pace`` is how much the metric still changed at the end (:func:`pace`), ``sign`` the word for
    what shows that the run learned nothing (:data:`MEANING`).

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
        if word := sign(metric, metrics, curve, counts):
            known["sign"] = word
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


def sign(
    metric: str, metrics: Mapping[str, float | None], curve: pd.DataFrame, counts: Mapping[str, Iterable[int]]
) -> str:
    """Return the word for what shows that a finished run learned nothing; empty where nothing does.

    Args:
        metric: what the table shows of the run.
        metrics: all final metrics of the run.
        curve: its evaluations, a column per metric; empty where it was not kept.
        counts: samples of each class in a part of the data (``test``, ``val``), where they are known.
    """
    part, _, name = metric.partition("_")
    value = metrics.get(metric)
    if value is None:
        return ""
    if constant(metric, value):
        return CONSTANT
    trained = metrics.get("train_auc")
    if trained is not None and trained < 0.5 and name.startswith(OF_RANKS):
        return REVERSED
    if not name.startswith(OF_SCORES) and _one_class(part, metrics, [*counts.get(part, ())]):
        return ONE_CLASS
    return FLAT if _flat(curve, part) else ""


def class_counts(run: RunSpec, data_dir: Path) -> dict[str, list[int]]:
    """Return the samples of each class in the test and validation parts of a run; empty where they are not known."""
    with contextlib.suppress(UserError):
        facts = read_facts(run.data, run.seed, data_dir)
        return {name: [*facts[part]["class_counts"].values()] for name, part in OF_PARTITION.items()}
    return {}


def constant(metric: str, value: float) -> bool:
    """Say whether it is the AUC of scores that are all the same."""
    # of a site with a few samples 0.5 is one value of many
    return metric.partition("_")[2].startswith("auc") and "@" not in metric and value == 0.5


def _one_class(part: str, metrics: Mapping[str, float | None], counts: list[int]) -> bool:
    """Say whether every accuracy of a run is exactly that of a prediction that never changes."""
    present = [n for n in counts if n]
    if len(present) < 2:
        return False
    shares = [n / sum(present) for n in present]
    gives = {"accuracy": shares, "overall_accuracy": shares, "balanced_accuracy": [1 / len(present)]}
    seen = {name: metrics.get(f"{part}_{name}") for name in gives}
    return any(value is not None for value in seen.values()) and all(
        value is None or any(math.isclose(value, share, rel_tol=1e-9) for share in gives[name])
        for name, value in seen.items()
    )


def _flat(curve: pd.DataFrame, part: str) -> bool:
    """Say whether nothing that was measured on a part ever moved, short of perfect; few evaluations show nothing."""
    measured = curve[[name for name in curve if str(name).startswith(f"{part}_")]]
    if len(curve) < STILL or measured.empty:
        return False
    return bool((measured.nunique() == 1).all() and (measured.iloc[-1] != 1.0).any())
