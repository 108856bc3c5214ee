"""Test metrics: ROC-AUC, average precision, minority and overall accuracy.

scikit-learn's functions give the same numbers, but importing scikit-learn takes as long as many a cell of the demo.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the ROC-AUC; nan if only one class is present, since the AUC is then undefined.

    The AUC is the share of pairs of a positive and a negative in which the positive has the higher score (Mann and
    Whitney's U); a tie counts one half. Pairs are counted in whole numbers.

    Args:
        scores: [n].
        labels: 1 for positives, 0 for negatives, [n].
    """
    if labels.min() == labels.max():
        return float("nan")
    positives, negatives = _per_score(scores, labels)
    below = np.cumsum(negatives) - negatives
    halves = int((positives * (2 * below + negatives)).sum())
    return halves / (2 * int(positives.sum()) * int(negatives.sum()))


def average_precision(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the average precision; nan if there are no positives.

    The sum over falling thresholds k of (R_k - R_{k-1}) P_k, with R the recall and P the precision; arguments as for
    :func:`auc`.
    """
    if not labels.any():
        return float("nan")
    positives, negatives = (counts[::-1] for counts in _per_score(scores, labels))
    precision = np.cumsum(positives) / np.cumsum(positives + negatives)
    return float((positives * precision).sum() / positives.sum())


def _per_score(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count positives and negatives at each distinct score, in rising order: two arrays of int64."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    positives = np.bincount(place, weights=labels == 1, minlength=len(counts)).astype(np.int64)
    return positives, counts.astype(np.int64) - positives


def recalls(predicted: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return each class's recall [n_classes]; nan for classes without samples."""
    counts = np.bincount(labels, minlength=n_classes)
    hits = np.bincount(labels[predicted == labels], minlength=n_classes)
    return np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)


def binary_metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the metrics of a binary task from scores [n] and labels in {0, 1}."""
    return {"auc": auc(scores, labels), "ap": average_precision(scores, labels)}


def multiclass_metrics(scores: np.ndarray, labels: np.ndarray, minority: Sequence[int]) -> dict[str, float]:
    """Return overall accuracy and, with several minority classes, the smallest of their recalls (climb, section 4).

    Args:
        scores: [n, C].
        labels: [n].
        minority: the minority classes; if there are none, the second metric is left out.
    """
    predicted = scores.argmax(1)
    metrics = {"overall_accuracy": float((predicted == labels).mean())}
    if minority:
        metrics["minority_accuracy"] = float(
            recalls(predicted, labels, scores.shape[1])[list(minority)].min()
        )
    return metrics
