"""Labels as scores are the perfect control: every metric of scores gives it its best value, and its opposite the worst.

Random scores lie between, at what chance gives.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedbench import metric_table
from fedbench.objectives import detailed_metrics, metrics
from fedbench.tasks import classification, detailed, random_scores

N, POSITIVES, C, MINORITY = 4000, 800, 4, (1, 3)


def of_all(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return every metric of scores [n, C] that there is for their number of classes."""
    binary = scores.shape[1] == 1
    basic = (
        metrics.binary_metrics(scores[:, 0], labels)
        if binary
        else metrics.multiclass_metrics(scores, labels, MINORITY)
    )
    more = {
        name: of(scores, labels)
        for name, of in detailed_metrics.SCALARS.items()
        if binary or name != "sensitivity_at_95_specificity"
    }
    recalls = detailed_metrics.class_recalls(scores, labels)
    clients = detailed_metrics.client_accuracies(
        recalls, np.array([[1] * len(recalls), [*range(len(recalls))]])
    )
    return {**basic, **more, "recall_0": recalls[0], "worst_client_accuracy": clients.min()}


def controls(classes: int) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return all metrics of labels as scores, of random scores, and of scores that are always wrong."""
    rng = np.random.default_rng(0)
    labels = (
        rng.permutation(np.arange(N) < POSITIVES).astype(int) if classes == 2 else rng.integers(0, classes, N)
    )
    if classes == 2:
        ties_apart = rng.uniform(-0.1, 0.1, (N, 1))
        perfect, wrong = labels[:, None] * 2.0 - 1 + ties_apart, 1 - labels[:, None] * 2.0 + ties_apart
    else:
        perfect, wrong = np.eye(classes)[labels], np.eye(classes)[(labels + 1) % classes]
    random = rng.normal(size=perfect.shape)
    return of_all(perfect, labels), of_all(random, labels), of_all(wrong, labels)


@pytest.mark.parametrize("classes", [2, C])
def test_labels_as_scores_are_best_and_their_opposite_worst(classes: int) -> None:
    perfect, random, wrong = controls(classes)
    for name, best in perfect.items():
        measure = metric_table.measure(f"test_{name}")
        assert best == measure.high == 1.0, name
        # the least average precision is not 0: all positives stand behind all negatives
        last = [rank / (N - POSITIVES + rank) for rank in range(1, POSITIVES + 1)]
        assert wrong[name] == pytest.approx(np.mean(last) if name == "ap" else 0, abs=1e-12), name
        assert wrong[name] < random[name] < best, name


def test_random_scores_are_at_chance() -> None:
    _, binary, _ = controls(2)
    assert binary["auc"] == pytest.approx(0.5, abs=0.03)
    assert binary["ap"] == pytest.approx(0.2, abs=0.03)
    assert binary["sensitivity_at_95_specificity"] == pytest.approx(0.05, abs=0.03)
    assert binary["balanced_accuracy"] == pytest.approx(0.5, abs=0.03)
    _, several, _ = controls(C)
    assert several["overall_accuracy"] == pytest.approx(1 / C, abs=0.03)


def test_every_metric_of_scores_has_its_control() -> None:
    named = {*classification.Task.measures, *random_scores.Task.measures, *detailed.NAMES}
    of_clients = {"client_accuracy_std", "class_recalls"}  # a spread; as recall_0
    assert named - of_clients <= {*controls(2)[0], *controls(C)[0]}
