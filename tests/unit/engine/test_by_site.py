"""What is measured at each site is what the same model has on that site's own test samples."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from world import points

from fedbench import tasks
from fedbench.data.clients import Arrays, ClientData
from fedbench.engine.evaluator import MOST_DEVICES, Evaluator
from fedbench.net import Net
from fedbench.spec import TaskSpec, TrainSpec

TRAIN = TrainSpec(iterations=4, period=2, batch_size=4)


W = torch.tensor([1.0, -0.4, 0.3, 0.1], dtype=torch.float64)


def linear(arrays: Arrays, task: TaskSpec | None = None) -> tuple[Net, Evaluator]:
    net = Net(torch.nn.Linear(3, 1).double())
    return net, Evaluator(
        tasks.make_task(task), net, arrays, ClientData(arrays, TRAIN, 0, torch.device("cpu"))
    )


def measured(arrays: Arrays, parts: tuple[str, ...] = ()) -> tuple[dict[str, float], np.ndarray]:
    net, evaluator = linear(arrays)
    inputs = torch.from_numpy(arrays.x_test)[None]
    scores = net.scores(W[None], inputs, None, train=False)[0, :, 0]
    return evaluator.metrics(W, None, parts=parts), scores.numpy()


def sited(site: np.ndarray) -> Arrays:
    return dataclasses.replace(points(), site_test=site, sites=("A", "B", "C"))


def test_the_auc_of_a_site_its_worst_and_their_spread() -> None:
    arrays = sited(np.arange(40) % 3)
    metrics, scores = measured(arrays)
    part = [roc_auc_score(arrays.y_test[k::3], scores[k::3]) for k in range(3)]
    assert [metrics[f"test_auc@{name}"] for name in "ABC"] == pytest.approx(part)
    assert metrics["worst_site_test_auc"] == pytest.approx(min(part)) and len({*part}) == 3
    assert metrics["site_std_test_auc"] == pytest.approx(np.std(part))
    assert metrics["test_auc"] == pytest.approx(roc_auc_score(arrays.y_test, scores))


def test_the_worst_site_of_what_should_be_small_is_the_largest() -> None:
    _, evaluator = linear(sited(np.arange(40) % 3), TaskSpec(name="auc_square"))
    metrics = evaluator.metrics(W, None)
    norms = [metrics[f"test_gradient_norm@{name}"] for name in "ABC"]
    assert metrics["worst_site_test_gradient_norm"] == max(norms) > min(norms)


@pytest.mark.parametrize(("clients", "known"), [(MOST_DEVICES, True), (MOST_DEVICES + 1, False)])
def test_models_of_a_few_clients_are_measured_one_by_one(clients: int, known: bool) -> None:
    _, evaluator = linear(points())
    result = evaluator.spread({"x": W.repeat(clients, 1)})
    assert ("device_mean_test_auc" in result) == known == bool(result)


def test_the_auc_on_training_data_is_that_of_all_clients_samples_of_two_classes() -> None:
    arrays = points()
    net, evaluator = linear(arrays)
    scores = net.scores(W[None], torch.from_numpy(arrays.x_train)[None], None, train=False)[0, :, 0]
    expected = {"train_auc": pytest.approx(roc_auc_score(arrays.y_train, scores.numpy()))}
    assert evaluator.on_training_data(W, None) == expected
    assert evaluator.on_training_data(1e308 * W, None) == {}, "the test part was finite"
    _, several = linear(dataclasses.replace(arrays, n_classes=3))
    assert several.on_training_data(W, None) == {}


def test_a_site_with_one_class_has_no_auc_and_is_in_no_worst() -> None:
    y = points().y_test
    site = np.where(np.cumsum(y) <= 3, 0, 1)
    site[(y == 1) & (site == 0)] = 1
    metrics, _ = measured(sited(site))
    assert math.isnan(metrics["test_auc@A"]) and metrics["worst_site_test_auc"] == metrics["test_auc@B"]
    assert math.isnan(metrics["site_std_test_auc"]), "one site has no spread"
    assert "test_auc@C" not in metrics  # no test sample


def test_nothing_is_measured_by_site_where_nobody_knows_it_or_a_client_is_asked() -> None:
    assert {*measured(points())[0]} == {"test_auc", "test_ap"}
    assert {*measured(sited(np.arange(40) % 3), ("test",))[0]} == {"test_auc", "test_ap"}
