"""When a run is evaluated and what is measured: the schedule, and metrics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from world import CPU, PARAMS, images, simulate, spec

from fedbench.algorithms import fedavg, local_sgdam
from fedbench.engine.outcome import Stopped
from fedbench.engine.simulate import Simulation
from fedbench.objectives.metrics import auc


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
