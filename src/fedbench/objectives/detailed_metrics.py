"""Metrics of medical and fairness papers, by scikit-learn, which is imported only for runs that ask for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score, roc_curve

SPECIFICITY = 0.95
"""The specificity at which :func:`sensitivity` is computed."""


def predicted(scores: np.ndarray) -> np.ndarray:
    """Return the predicted classes [n] for outputs [n, C]; the threshold of one logit is 0, a probability of 0.5."""
    classes: np.ndarray = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)
    return classes


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of samples whose predicted class is right."""
    return float((predicted(scores) == labels).mean())


def balanced_accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean recall of the classes that occur in ``labels``."""
    return float(balanced_accuracy_score(labels, predicted(scores)))


def f1(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the F1 score of the positive class or, with several classes, the mean of each class's (macro)."""
    average = "binary" if scores.shape[1] == 1 else "macro"
    return float(f1_score(labels, predicted(scores), average=average, zero_division=0.0))


def sensitivity(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest true-positive rate at a specificity of at least 95 %; nan if a class is missing."""
    if labels.min() == labels.max():
        return float("nan")
    false_positives, true_positives, _ = roc_curve(labels, scores[:, 0], drop_intermediate=False)
    return float(true_positives[false_positives <= 1 - SPECIFICITY + 1e-12].max())


def class_recalls(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return each class's recall [C] (two classes for one logit); nan for a class without samples."""
    n_classes = max(scores.shape[1], 2)
    recalls = recall_score(
        labels, predicted(scores), labels=np.arange(n_classes), average=None, zero_division=np.nan
    )
    return np.asarray(recalls, dtype=float)


def client_accuracies(recalls: np.ndarray, class_counts: np.ndarray) -> np.ndarray:
    """Return the expected accuracy [N] of each client: recalls [C] weighted by the client's class shares.

    Clients have no test data of their own; this is the accuracy on test data with a client's class proportions.

    Args:
        recalls: recall of each class on the common test data, [C].
        class_counts: each client's training samples of each class, [N, C].
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
