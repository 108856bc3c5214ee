"""When a run is evaluated, and metrics against their definitions: of all, of sites, of devices."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from world import CPU, PARAMS, images, points, simulate, spec

from fedbench import tasks
from fedbench.algorithms import fedavg, local_sgdam
from fedbench.data.clients import Arrays, ClientData
from fedbench.engine.evaluator import MOST_DEVICES, Evaluator
from fedbench.engine.execution import Stopped
from fedbench.engine.simulate import Simulation
from fedbench.net import Net
from fedbench.objectives.metrics import auc, average_precision, binary_metrics, multiclass_metrics, recalls
from fedbench.spec import TaskSpec, TrainSpec

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


class TestSchedules:
    @pytest.mark.parametrize(
        ("rounds", "evaluations", "expected"),
        [(10, 4, [0, 2, 5, 8, 10]), (3, 20, [0, 1, 2, 3]), (7, 1, [0, 7]), (1, 1, [0, 1])],
    )
    def test_evaluations_are_spread_from_start_to_end(
        self, rounds: int, evaluations: int, expected: list[int]
    ) -> None:
        _, outcome = simulate(spec(rounds=rounds, evaluations=evaluations), images())
        assert [row["round"] for row in outcome.curve] == expected
        assert [row["iteration"] for row in outcome.curve] == [4 * r for r in expected]
        assert [row["samples"] for row in outcome.curve] == [3 * 4 * 6 * r for r in expected]
        assert outcome.metrics["test_auc"] == outcome.curve[-1]["test_auc"]

    def test_train_loss_is_the_mean_since_the_last_evaluation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = fedavg.Method.step
        seen: list[float] = []

        def spy(self: Any, *args: Any) -> Any:
            state = original(self, *args)
            seen.append(float(state["loss"]))
            return state

        monkeypatch.setattr(fedavg.Method, "step", spy)
        _, outcome = simulate(spec(rounds=4, evaluations=2), images())
        assert math.isnan(outcome.curve[0]["train_loss"])
        half = len(seen) // 2
        assert outcome.curve[1]["train_loss"] == pytest.approx(np.mean(seen[:half]))
        assert outcome.curve[2]["train_loss"] == pytest.approx(np.mean(seen[half:]))

    @pytest.mark.parametrize(
        ("rounds", "decay_at", "expected"),
        [
            (8, [0.5, 0.75], [1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25]),
            (3, [0.5, 0.75], [1, 1, 0.25]),  # two decays fall on one round: both count
            (4, [0.01], [1, 0.5, 0.5, 0.5]),  # never before the first round is over
            (2, [], [1, 1]),
        ],
    )
    def test_step_sizes_decay(
        self, rounds: int, decay_at: list[float], expected: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = local_sgdam.Method.step
        seen: list[float] = []

        def spy(self: Any, problem: Any, state: Any, batches: Any, decay: float) -> Any:
            seen.append(decay)
            return original(self, problem, state, batches, decay)

        monkeypatch.setattr(local_sgdam.Method, "step", spy)
        train = {"decay_at": decay_at, "decay_factor": 0.5, "rounds": rounds, "period": 1}
        simulate(spec("local_sgdam", **train, clients=1), images((20,)))
        assert seen == expected


class TestMetrics:
    def test_validation_samples_are_scored_not_trained_on(self) -> None:
        arrays = images(validation=15)
        simulation, outcome = simulate(spec(rounds=2), arrays)
        held, network = arrays.validation, simulation.problem.net
        scores = network.scores(simulation.server["x"][None], torch.tensor(arrays.x_train[held])[None])
        expected = auc(scores[0, :, 0].detach().numpy(), arrays.y_train[held])
        assert outcome.metrics["val_auc"] == pytest.approx(expected)
        assert {"val_ap", "test_auc", "test_ap"} <= outcome.metrics.keys()
        used = {position for client in arrays.clients for position in client.tolist()}
        assert not used & set(held.tolist()) and len(simulation.data.labels) == 77
        _, without = simulate(spec(rounds=2), images())
        assert not [name for name in without.metrics if name.startswith("val")]

    def test_devices_are_evaluated_before_the_last_averaging(self) -> None:
        arrays = images()
        simulation = Simulation(spec(rounds=1), arrays, CPU)
        clients = Simulation(spec(rounds=1), arrays, CPU).train_round()["x"]
        outcome = simulation.run()
        scores = simulation.problem.net.scores(clients, torch.tensor(arrays.x_test).expand(3, -1, -1, -1, -1))
        part = [auc(s[:, 0].detach().numpy(), arrays.y_test) for s in scores]
        assert outcome.metrics["device_mean_test_auc"] == pytest.approx(np.mean(part))
        assert outcome.metrics["device_var_test_auc"] == pytest.approx(np.var(part))
        assert len(set(part)) > 1

    def test_several_classes_are_measured_by_accuracy(self) -> None:
        arrays = images(n_classes=3)
        run = spec("climb", rounds=2, minority_classes=[0, 2], network="mlp")
        _, outcome = simulate(run, arrays)
        assert {"test_overall_accuracy", "test_minority_accuracy", "dual_mean"} <= outcome.metrics.keys()
        assert "test_auc" not in outcome.metrics
        assert {row["quantity"] for row in outcome.clients} == {"dual", "loss"}

    def test_the_model_at_h_is_evaluated_too(self) -> None:
        _, outcome = simulate(spec("local_scgdam", rounds=3), images())
        assert outcome.metrics["test_auc_h"] != outcome.metrics["test_auc"]
        assert PARAMS["local_scgdam"]["rho"] > 0

    def test_client_losses_are_means_over_each_clients_data(self) -> None:
        arrays = images((4, 1200, 9))
        simulation = Simulation(spec(), arrays, CPU)
        w = simulation.server["x"]
        result = simulation.problem.client_losses(w, None)
        for client, value in zip(arrays.clients, result, strict=True):
            inputs, labels = (torch.tensor(of[client]) for of in (arrays.x_train, arrays.y_train))
            logits = simulation.problem.net.scores(w[None], inputs[None])[0, :, 0]
            loss = F.binary_cross_entropy_with_logits(logits, labels.float())
            assert float(value) == pytest.approx(float(loss), rel=1e-5)


def test_seconds_lie_beside_the_curve_one_for_each_evaluation_and_go_on_after_a_stop(tmp_path: Path) -> None:
    """Training alone: they never fall, and never exceed all seconds less those of evaluations."""
    run, checkpoint = spec(rounds=6, evaluations=3), tmp_path / "checkpoint.pt"
    rounds = iter([False, False, True])
    with pytest.raises(Stopped):
        simulate(run, images(), checkpoint=checkpoint, stop=lambda: next(rounds))
    _, outcome = simulate(run, images(), checkpoint=checkpoint)
    assert len(outcome.curve_seconds) == len(outcome.curve) == 4
    assert outcome.curve_seconds == sorted(outcome.curve_seconds)
    assert 0 <= outcome.curve_seconds[0] < outcome.curve_seconds[1]
    assert outcome.curve_seconds[-1] <= outcome.seconds - sum(outcome.evaluation_seconds[:-1])
    assert not any("seconds" in name for name in outcome.curve[0])
