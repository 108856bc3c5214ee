"""Test metrics: ROC-AUC, average precision, minority and overall accuracy (algorithms by scikit-learn)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the ROC-AUC, ties counted one half; nan when only one class is present (it is undefined then)."""
    if labels.min() == labels.max():
        return float("nan")
    return float(roc_auc_score(labels, scores))


def average_precision(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the average precision, sum_k (R_k - R_{k-1}) P_k; nan without positives."""
    if not labels.any():
        return float("nan")
    return float(average_precision_score(labels, scores))


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
        minority: the minority classes; none leaves the second metric out.
    """
    predicted = scores.argmax(1)
    metrics = {"overall_accuracy": float((predicted == labels).mean())}
    if minority:
        metrics["minority_accuracy"] = float(
            recalls(predicted, labels, scores.shape[1])[list(minority)].min()
        )
    return metrics
