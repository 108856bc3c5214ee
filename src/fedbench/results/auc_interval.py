"""How far the AUC of a test part may lie from that of the patients that it was drawn from."""

from __future__ import annotations

import math

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


def _lower(auc: float, positives: int, negatives: int) -> float:
    """Return the AUC that lies a quantile of its standard errors below the measured one."""
    often, more = float(quantile(1 - LEVEL, math.inf)), (positives + negatives) / 2 - 1

    def distance(true: float) -> float:
        variance = true * (1 - true) * (1 + more * (1 - true) / (2 - true) + more * true / (1 + true))
        return auc - true - often * math.sqrt(variance / (positives * negatives))

    return float(brentq(distance, 0.0, auc - NEAR)) if auc > NEAR else 0.0
