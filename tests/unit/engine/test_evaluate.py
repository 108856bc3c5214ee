"""Metrics against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from world import images, simulate, spec

from fedbench.objectives.metrics import auc, average_precision, binary_metrics, multiclass_metrics, recalls

samples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=30)


@given(samples)
def test_auc_is_the_share_of_ordered_pairs_with_ties_at_one_half(pairs: list[tuple[int, int]]) -> None:
    scores, labels = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs])
    plus, minus = scores[labels == 1], scores[labels == 0]
    if not len(plus) or not len(minus):
        assert math.isnan(auc(scores, labels))
        return
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in plus for b in minus]
    assert auc(scores, labels) == pytest.approx(np.mean(wins))


@pytest.mark.parametrize("test", [5, 37, 99, 203])
@pytest.mark.parametrize(
    ("network", "options"),
    [("mlp", {"hidden": []}), ("mlp", {"hidden": [8]}), ("cnn", {"channels": [3], "hidden": [40]})],
)
def test_equal_samples_have_equal_scores_wherever_they_stand(
    network: str, options: dict[str, Any], test: int
) -> None:
    """What a product leaves over of a batch was added up in another order: constant inputs had an AUC of .47 to .56."""
    arrays = images((20,), test=test, side=16)
    sample = np.random.default_rng(1).random((1, 16, 16), dtype=np.float32)
    arrays.x_test[:] = sample
    _, outcome = simulate(spec(network=network, options=options, clients=1, rounds=1), arrays)
    assert outcome.metrics["test_auc"] == 0.5


@given(samples)
def test_average_precision_sums_precision_over_recall_gained(pairs: list[tuple[int, int]]) -> None:
    scores, labels = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs])
    if not labels.any():
        assert math.isnan(average_precision(scores, labels))
        return
    total, before = 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        chosen = scores >= threshold
        recall, precision = labels[chosen].sum() / labels.sum(), labels[chosen].mean()
        total += (recall - before) * precision
        before = recall
    assert average_precision(scores, labels) == pytest.approx(total)


def test_metrics_agree_with_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(5000) < 0.05).astype(np.int64)
    for scores in (rng.standard_normal(5000) + labels, (rng.random(5000) + labels).round(2)):
        scores = scores.astype(np.float32)
        assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), rel=1e-13)
        expected = average_precision_score(labels, scores)
        assert average_precision(scores, labels) == pytest.approx(expected, rel=1e-13)


def test_binary_metrics_carry_both() -> None:
    scores, labels = np.array([0.1, 0.9, 0.8, 0.2]), np.array([0, 1, 0, 1])
    assert binary_metrics(scores, labels) == {"auc": 0.75, "ap": pytest.approx(0.5 + 0.5 * 2 / 3)}


def test_recalls_count_each_class_apart_and_leave_absent_ones_undefined() -> None:
    labels, predicted = np.array([0, 0, 0, 0, 1, 1, 3]), np.array([0, 0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(recalls(predicted, labels, 4), [0.75, 0.5, np.nan, 0.0])


def test_minority_accuracy_is_the_worst_recall_of_the_minority_classes() -> None:
    labels = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    scores = np.eye(3)[[0, 0, 1, 1, 1, 2, 2, 0]]
    assert multiclass_metrics(scores, labels, ()) == {"overall_accuracy": 0.75}
    assert multiclass_metrics(scores, labels, (1,))["minority_accuracy"] == 0.75
    assert multiclass_metrics(scores, labels, (0, 1, 2))["minority_accuracy"] == 0.5
