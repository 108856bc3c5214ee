"""More metrics: each against scikit-learn or by hand, over clients too, and asked for by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_curve
from world import images, simulate, spec

from fedbench import metric_table
from fedbench.errors import UserError
from fedbench.objectives import detailed_metrics as detailed
from fedbench.spec import TaskSpec
from fedbench.tasks import make_task
from fedbench.tasks.detailed import NAMES

RNG = np.random.default_rng(0)


def task(*metrics: str) -> TaskSpec:
    return TaskSpec(name="detailed", options={"metrics": list(metrics)})


def test_sensitivity_is_read_at_a_specificity_of_95_percent() -> None:
    negatives, positives = np.arange(100.0), np.array([94.5, 95.5, 98.5, 200.0])
    scores = np.concatenate([negatives, positives])[:, None]
    labels = np.repeat([0, 1], [100, 4])
    # a threshold just above 94 leaves 5 of 100 negatives: specificity 0.95, and all four positives are above it
    assert detailed.sensitivity(scores, labels) == 1.0
    assert detailed.sensitivity(np.where(scores == 94.5, 93.5, scores), labels) == 0.75
    random = RNG.normal(size=(300, 1)) + labels.repeat(3)[:300, None]
    truth = labels.repeat(3)[:300]
    truth[:30] = 1
    fpr, tpr, _ = roc_curve(truth, random[:, 0])
    assert detailed.sensitivity(random, truth) == max(t for f, t in zip(fpr, tpr, strict=True) if f <= 0.05)
    assert np.isnan(detailed.sensitivity(random, np.ones(300, int)))
    # a positive and a negative of each score: the curve is a straight line, and a threshold leaves 5 of each
    assert detailed.sensitivity(np.arange(100.0).repeat(2)[:, None], np.tile([0, 1], 100)) == 0.05


def test_accuracies_over_clients_follow_their_class_proportions() -> None:
    recalls = np.array([1.0, 0.5, np.nan])
    counts = np.array([[10, 0, 0], [0, 4, 0], [3, 1, 0]])
    assert detailed.client_accuracies(recalls, counts).tolist() == [1.0, 0.5, 0.875]
    lacking = detailed.client_accuracies(recalls, np.array([[1, 0, 1]]))
    assert np.isnan(lacking[0]), "a class the test part lacks"


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_run_records_what_was_asked_for_and_trains_as_without(n_classes: int) -> None:
    names = [name for name in NAMES if n_classes == 2 or not name.startswith("sensitivity")]
    arrays = images((20, 30, 40), n_classes=n_classes, test=80)
    plain = spec(rounds=4)
    run = plain.model_copy(update={"task": task(*names)})
    assert run.key != plain.key
    (single, first), (other, second) = simulate(plain, arrays), simulate(run, arrays)
    assert torch.equal(single.server["x"], other.server["x"])
    assert first.metrics.items() <= second.metrics.items()
    net = other.problem.net
    with torch.no_grad():
        inputs = torch.tensor(arrays.x_test)[None]
        scores = net.scores(other.server["x"][None], inputs, train=False)[0].numpy()
    guess = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(1)
    labels, result = arrays.y_test, second.metrics
    assert result["test_accuracy"] == accuracy_score(labels, guess)
    assert result["test_balanced_accuracy"] == pytest.approx(balanced_accuracy_score(labels, guess))
    average = "binary" if n_classes == 2 else "macro"
    assert result["test_f1"] == pytest.approx(f1_score(labels, guess, average=average, zero_division=0))
    recalls = np.array([result[f"test_recall_{c}"] for c in range(n_classes)])
    assert recalls == pytest.approx([(guess[labels == c] == c).mean() for c in range(n_classes)])
    shares = np.array([np.bincount(arrays.y_train[c], minlength=n_classes) / len(c) for c in arrays.clients])
    part = shares @ recalls
    assert result["test_worst_client_accuracy"] == pytest.approx(part.min())
    assert result["test_client_accuracy_std"] == pytest.approx(part.std()) and part.std() > 0
    for name in set(second.metrics) - set(first.metrics):
        assert metric_table.find(name) is not None, name


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        (["balanced"], r"task 'detailed': unknown metric 'balanced'.*Known: accuracy, balanced_accuracy"),
        ([], "metrics is a list of names"),
        ("f1", "metrics: Input should be a valid"),
        (None, "metrics: Input should be a valid"),
    ],
)
def test_mistakes_are_named(metrics: object, says: str) -> None:
    with pytest.raises(UserError, match=says):
        make_task(TaskSpec(name="detailed", options={"metrics": metrics}))


def test_a_metric_of_two_classes_is_refused_before_training_on_more() -> None:
    run = spec().model_copy(update={"task": task("sensitivity_at_95_specificity")})
    with pytest.raises(UserError, match="is for two classes, and the data have 3"):
        simulate(run, images(n_classes=3))


def test_better_and_worse_are_known() -> None:
    assert metric_table.measure("test_client_accuracy_std").better == "lower"
    assert metric_table.label("test_recall_7") == "recall of class 7"
    assert metric_table.find("test_recall_x") is None
