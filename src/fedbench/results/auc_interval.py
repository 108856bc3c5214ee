"""How far the AUC of a test part may lie from that of what it was drawn from; and that of two models.

Samples count as independent: where a patient has several, intervals are too short.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from fedbench.results.statistics import LEVEL, quantile

NEAR = 1e-9
"""Distance from the AUC at which the search for an end begins."""


def auc_interval(auc: float, positives: int, negatives: int) -> tuple[float, float]:
    """Return the 90 % interval of an AUC over the draw of test samples, within [0, 1] (Newcombe 2006, method 5).

    The model is held fixed, so it says nothing of the seeds of training. NaN where a class has no sample.

    Args:
        auc: of the test part, in [0, 1].
        positives: test samples of the positive class.
        negatives: those of the other.
    """
    if not (0 <= auc <= 1 and positives and negatives):
        return math.nan, math.nan
    return _lower(auc, positives, negatives), 1 - _lower(1 - auc, positives, negatives)


def gain_interval(
    auc: float, other: float, positives: int, negatives: int, of_seeds: float = 0.0, correlation: float = 0.0
) -> tuple[float, float]:
    """Return the 90 % interval of ``auc`` minus ``other`` on one test part, over its draw and over seeds.

    Each end adds the distances of both AUCs to the ends of their own intervals in squares, less what they have in
    common (Newcombe 1998, method 10; Zou and Donner 2008). At 0 they count as tested on different samples, which is too
    wide. DeLong's own interval of the difference is too short in small hospitals and near an AUC of 1.

    Args:
        auc, other: means over seeds, in [0, 1].
        positives, negatives: as in :func:`auc_interval`.
        of_seeds: half the interval of the difference over seeds, which is added in squares, too.
        correlation: of both AUCs over draws, as :func:`correlation` estimates it.
    """
    (low, high), (low_other, high_other) = (auc_interval(each, positives, negatives) for each in (auc, other))
    down = _without(auc - low, high_other - other, correlation)
    up = _without(high - auc, other - low_other, correlation)
    return auc - other - math.hypot(down, of_seeds), auc - other + math.hypot(up, of_seeds)


def _without(first: float, second: float, correlation: float) -> float:
    """Return the half width of a difference of two numbers that correlate, given theirs."""
    return math.hypot(first - correlation * second, math.sqrt(1 - correlation**2) * second)


def _lower(auc: float, positives: int, negatives: int) -> float:
    """Return the AUC that lies a quantile of its standard errors below the measured one."""
    often, more = float(quantile(1 - LEVEL, math.inf)), (positives + negatives) / 2 - 1

    def distance(true: float) -> float:
        variance = true * (1 - true) * (1 + more * (1 - true) / (2 - true) + more * true / (1 + true))
        return auc - true - often * math.sqrt(variance / (positives * negatives))

    return float(brentq(distance, 0.0, auc - NEAR)) if auc > NEAR else 0.0


def correlation(labels: np.ndarray, scores: np.ndarray, others: np.ndarray) -> float:
    """Return the correlation of two AUCs over draws of the test samples that both are of (DeLong et al. 1988).

    Args:
        labels: [n], 1 where positive.
        scores, others: [seeds, n] of both models; their AUCs are the means over seeds.

    Returns:
        In [-1, 1]; NaN with fewer than two samples of a class, or where an AUC does not depend on the draw.
    """
    counts = np.bincount(labels, minlength=2)
    if counts.min() < 2:
        return math.nan
    pair = [np.mean([_placements(labels == 1, of) for of in model], axis=0) for model in (scores, others)]
    covariance = sum(np.cov([of[labels == label] for of in pair]) / counts[label] for label in (0, 1))
    spread = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(np.clip(covariance[0, 1] / spread, -1, 1)) if spread > 0 else math.nan


def _placements(positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return of each sample the share of the other class that it is on the right side of, ties by half."""
    placed, ranks = np.empty(len(scores)), pd.Series(scores).rank().to_numpy()
    for of in (positive, ~positive):
        placed[of] = (ranks[of] - pd.Series(scores[of]).rank().to_numpy()) / (~of).sum()
    return np.where(positive, placed, 1 - placed)
