"""Metrics that medical and fairness papers report, by scikit-learn; imported when a run asks for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score, roc_curve

SPECIFICITY = 0.95
"""At which :func:`sensitivity` is read."""


def predicted(scores: np.ndarray) -> np.ndarray:
    """Return the predicted classes [n] for outputs [n, C]; one logit is cut at 0, a probability of one half."""
    classes: np.ndarray = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)
    return classes


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of samples whose class is predicted."""
    return float((predicted(scores) == labels).mean())


def balanced_accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean recall of the classes that occur in ``labels``."""
    return float(balanced_accuracy_score(labels, predicted(scores)))


def f1(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the F1 score of the positive class or, with several classes, the mean of each class's (macro)."""
    average = "binary" if scores.shape[1] == 1 else "macro"
    return float(f1_score(labels, predicted(scores), average=average, zero_division=0.0))


def sensitivity(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest share of positives found at a specificity of at least 95 %; nan where a class is missing."""
    if labels.min() == labels.max():
        return float("nan")
    false_positives, true_positives, _ = roc_curve(labels, scores[:, 0])
    return float(true_positives[false_positives <= 1 - SPECIFICITY + 1e-12].max())


def class_recalls(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return each class's recall [C] (two classes for one logit); nan for a class without samples."""
    n_classes = max(scores.shape[1], 2)
    recalls = recall_score(
        labels, predicted(scores), labels=np.arange(n_classes), average=None, zero_division=np.nan
    )
    return np.asarray(recalls, dtype=float)


def client_accuracies(recalls: np.ndarray, class_counts: np.ndarray) -> np.ndarray:
    """Return the accuracy [N] to expect at each client: recalls [C] weighted by its share of each class [N, C].

    Clients have no test data of their own; this is the accuracy on test data with a client's class proportions.
    """
    shares = class_counts / class_counts.sum(1, keepdims=True)
    accuracies: np.ndarray = np.where(shares > 0, shares * recalls, 0.0).sum(1)
    return accuracies


SCALARS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
    "sensitivity_at_95_specificity": sensitivity,
}
