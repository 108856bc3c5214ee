"""The round loop: equal bytes, resumption, equal batches for all methods, chunks, divergence, schedules."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from world import CPU, METHODS, PARAMS, images, same, simulate, spec

from fedbench.algorithms import fedavg, local_sgdam
from fedbench.data import augment
from fedbench.data.clients import Work
from fedbench.engine import checkpoint
from fedbench.engine.outcome import Outcome, Progress, Stopped
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.specs import RunSpec
from fedbench.store.runs import csv_text

TWO = {"rule": "random", "clients": 2}
RESNET = {"network": "resnet20", "options": {"blocks": 1}}


def bytes_of(outcome: Outcome) -> tuple[str, str, dict[str, float]]:
    """All that a run leaves behind but times."""
    return csv_text(outcome.curve), csv_text(outcome.clients), outcome.metrics


class StoppedError(Exception):
    """Stands for a killed process."""


def interrupted(run: RunSpec, arrays: Any, path: Path, at: set[int], chunk: int | None = 1) -> Outcome:
    """Run with a checkpoint each round, dying in the given rounds before their checkpoint is written."""

    def die(progress: Progress) -> None:
        if progress.round in at:
            at.remove(progress.round)
            raise StoppedError

    while True:
        try:
            return Simulation(run, arrays, CPU, chunk, path, 0, die).run()
        except StoppedError:
            pass


class TestSameBytes:
    @pytest.mark.parametrize("method", METHODS)
    def test_a_run_gives_the_same_bytes_again_and_another_seed_does_not(self, method: str) -> None:
        arrays = images()
        _, first = simulate(spec(method, participation=TWO), arrays)
        torch.manual_seed(99)
        np.random.seed(99)  # nothing global is read
        _, second = simulate(spec(method, participation=TWO), arrays)
        _, other = simulate(spec(method, participation=TWO, seed=1), arrays)
        assert bytes_of(first) == bytes_of(second)
        assert first.curve[-1]["train_loss"] != other.curve[-1]["train_loss"]

    @pytest.mark.parametrize("method", METHODS)
    def test_resumed_equals_undisturbed(self, method: str, tmp_path: Path) -> None:
        """Dying in round 1 (no checkpoint yet), 3, 4 (after a decay) and in the last round."""
        run = spec(method, participation=TWO, rounds=7, decay_at=[0.45, 0.8], evaluations=3)
        _, undisturbed = simulate(run, images())
        resumed = interrupted(run, images(), tmp_path / "checkpoint.pt", {1, 3, 4, 7})
        assert bytes_of(resumed) == bytes_of(undisturbed)
        assert undisturbed.status == "finished"

    @pytest.mark.parametrize("chunk", [1, None])
    def test_resumed_equals_undisturbed_with_batch_norm_augmentation_and_local_epochs(
        self, chunk: int | None, tmp_path: Path
    ) -> None:
        arrays = images(side=8)
        train = {"period": None, "local_epochs": 2, "augment": "pad_crop_flip", "rounds": 4, **RESNET}
        run = spec("scaffold", participation=TWO, **train)
        _, undisturbed = simulate(run, arrays, chunk)
        resumed = interrupted(run, arrays, tmp_path / "checkpoint.pt", {2, 3}, chunk)
        assert bytes_of(resumed) == bytes_of(undisturbed)

    def test_resuming_does_not_start_over(self, tmp_path: Path) -> None:
        run, path, rounds = spec(rounds=6), tmp_path / "checkpoint.pt", []
        stop = {5}

        def on_round(progress: Progress) -> None:
            rounds.append((progress.begun_at, progress.round))
            if progress.round in stop:
                stop.clear()
                raise StoppedError

        with pytest.raises(StoppedError):
            Simulation(run, images(), CPU, 1, path, 0, on_round).run()
        Simulation(run, images(), CPU, 1, path, 0, on_round).run()
        assert rounds == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (4, 5), (4, 6)]

    @pytest.mark.parametrize("damage", ["truncated", "noise", "another run's", "another format", "empty"])
    def test_an_unusable_checkpoint_is_set_aside_and_the_run_starts_again(
        self, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "checkpoint.pt"
        run = spec("local_scgdam", rounds=4)
        _, undisturbed = simulate(run, images())

        def die(progress: Progress) -> None:
            if progress.round == 3:
                raise StoppedError

        key_of = spec("local_scgdam", rounds=4, seed=5) if damage == "another run's" else run
        if damage == "another format":
            monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
        with pytest.raises(StoppedError):
            Simulation(key_of, images(), CPU, 1, path, 0, die).run()
        monkeypatch.undo()
        whole = path.read_bytes()
        if damage == "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        elif damage == "noise":
            path.write_bytes(whole[:200] + bytes(200) + whole[400:])
        elif damage == "empty":
            path.write_bytes(b"")
        left = path.read_bytes()
        rounds: list[int] = []
        outcome = Simulation(run, images(), CPU, 1, path, 1e9, lambda p: rounds.append(p.round)).run()
        assert bytes_of(outcome) == bytes_of(undisturbed)
        assert rounds == [1, 2, 3, 4]
        assert path.with_name("checkpoint.pt.unusable").read_bytes() == left and not path.exists()


class TestSameWork:
    def test_all_methods_see_the_same_participants_and_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Work.batch
        log: list[tuple[Any, ...]] = []

        def spy(self: Work, step: int) -> Any:
            batch = original(self, step)
            content = hashlib.sha256(
                batch.inputs.numpy().tobytes() + batch.labels.numpy().tobytes()
            ).hexdigest()
            log.append((self._purpose, self._round, tuple(self._clients), step, content))
            return batch

        monkeypatch.setattr(Work, "batch", spy)
        seen, inner = {}, {}
        for method in METHODS:
            log.clear()
            simulate(spec(method, participation=TWO, augment="crop_flip", rounds=4), images())
            seen[method] = [item for item in log if item[0] == "batches"]
            inner[method] = [item for item in log if item[0] == "inner batches"]
        assert (
            len({content for *_, content in seen["fedavg"]}) == 4 * 2 * 4
        )  # rounds x clients x steps: all differ
        for method in METHODS:
            assert seen[method] == seen["fedavg"], method
            assert bool(inner[method]) == (method == "local_scgdam")
        zeta, xi = ([item[4] for item in log] for log in (seen["local_scgdam"], inner["local_scgdam"]))
        assert not set(zeta) & set(xi)  # independent draws

    def test_augmentation_changes_training_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        arrays = images()
        plain, _ = simulate(spec("coda", rounds=2), arrays)
        varied, _ = simulate(spec("coda", rounds=2, augment="crop_flip"), arrays)
        assert not torch.equal(plain.server["x"], varied.server["x"])
        calls = []
        monkeypatch.setattr(augment, "crop_flip", lambda inputs, rng: calls.append(len(inputs)) or inputs)
        same_again, outcome = simulate(spec("coda", rounds=2, decay_at=[0.5], augment="crop_flip"), arrays)
        undisturbed, expected = simulate(spec("coda", rounds=2, decay_at=[0.5]), arrays)
        assert calls == [6] * (
            2 * 4 * 3
        )  # rounds x steps x clients; neither evaluations nor the dual restart
        assert same(same_again.server, undisturbed.server) and csv_text(outcome.curve) == csv_text(
            expected.curve
        )


class TestChunks:
    SIZES = (5, 26, 9, 13, 30, 6, 17)

    @pytest.mark.parametrize("epochs", [None, 2], ids=["period", "local epochs"])
    @pytest.mark.parametrize("method", METHODS)
    def test_stacking_clients_changes_nothing_but_rounding(self, method: str, epochs: int | None) -> None:
        arrays = images(self.SIZES)
        train: dict[str, Any] = {"rounds": 3, "evaluations": 3}
        if epochs:
            train |= {"period": None, "local_epochs": epochs}
        runs = {c: simulate(spec(method, clients=7, **train), arrays, c) for c in (1, 2, 7, None)}
        for chunk in (2, 7, None):
            one, many = runs[1], runs[chunk]
            for name, tensor in one[0].server.items():
                torch.testing.assert_close(many[0].server[name], tensor, rtol=1e-3, atol=1e-5, equal_nan=True)
            for mine, theirs in zip(many[1].curve, one[1].curve, strict=True):
                assert {n: mine[n] for n in ("samples", "floats_up", "floats_down")} == {
                    n: theirs[n] for n in ("samples", "floats_up", "floats_down")
                }
                assert mine["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-4, nan_ok=True)

    @pytest.mark.usefixtures("double")
    @pytest.mark.parametrize("epochs", [None, 2], ids=["period", "local epochs"])
    def test_padding_stays_out_of_batch_norm(self, epochs: int | None) -> None:
        arrays = images((5, 26, 9, 5), side=8, dtype=np.float64)
        train: dict[str, Any] = {"rounds": 2, **RESNET}
        if epochs:
            train |= {"period": None, "local_epochs": epochs}
        one, alone = simulate(spec("scaffold", clients=4, **train), arrays, 1)
        many, together = simulate(spec("scaffold", clients=4, **train), arrays, None)
        for mine, theirs in ((many.server, one.server), (many.own, one.own)):
            for name in mine:
                torch.testing.assert_close(mine[name], theirs[name], rtol=1e-6, atol=1e-9)
        for name, value in alone.metrics.items():  # per device: clients come back in their own order
            assert together.metrics[name] == pytest.approx(value, rel=1e-6, abs=1e-9)


class TestDivergence:
    @pytest.mark.parametrize("rounds", [1, 6], ids=["in the last round", "before it"])
    @pytest.mark.parametrize("method", METHODS)
    def test_stops_and_says_so(self, method: str, rounds: int) -> None:
        seen: list[int] = []
        run = spec(method, {"lr": 1e30}, rounds=rounds)
        _, outcome = simulate(run, images(), on_round=lambda p: seen.append(p.round))
        assert outcome.status == "diverged" and outcome.metrics == {}
        assert f"non-finite in round 1 of {rounds}" in outcome.reason
        assert len(outcome.curve) == 1 and seen == []

    @pytest.mark.parametrize("method", METHODS)
    def test_finite_parameters_too_large_to_score_with_are_divergence(self, method: str) -> None:
        run = spec(method, {"lr": 1e19}, period=1, rounds=4, evaluations=4, options={"hidden": [5, 5]})
        _, outcome = simulate(run, images())
        assert outcome.status == "diverged" and "non-finite" in outcome.reason

    def test_undefined_numbers_that_are_kept_are_no_divergence(self) -> None:
        """CLIMB knows no client losses before its first dual step."""
        _, outcome = simulate(spec("climb", {"dual_every": 4}, rounds=5), images())
        assert outcome.status == "finished"
        losses = [row["client0"] for row in outcome.clients if row["quantity"] == "loss"]
        assert math.isnan(float(losses[0])) and math.isfinite(float(losses[-1]))


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

    def test_new_stages_begin_once_with_each_decay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from fedbench.algorithms import coda

        stages: list[float] = []
        original = coda.Method.new_stage

        def spy(self: Any, problem: Any, server: Any) -> Any:
            after = original(self, problem, server)
            assert torch.equal(after["anchor"], server["x"])
            stages.append(float(after["alpha"]))
            return after

        monkeypatch.setattr(coda.Method, "new_stage", spy)
        simulate(spec("coda", rounds=8, decay_at=[0.5, 0.75]), images())
        assert len(stages) == 2 and stages[0] != stages[1]

    @pytest.mark.parametrize(
        ("train", "rounds"),
        [
            ({"iterations": 10, "period": 4}, 3),  # the last round is made whole
            ({"iterations": 8, "period": 4}, 2),
            ({"epochs": 2, "period": 2}, 5),  # the largest client: 31 // 6 = 5 batches an epoch
            ({"epochs": 0.5, "period": 1}, 2),
            ({"rounds": 3, "period": 4}, 3),
        ],
    )
    def test_rounds_are_counted(self, train: dict[str, Any], rounds: int) -> None:
        simulation = Simulation(spec(**{"rounds": None, **train}), images(), CPU)
        assert simulation.schedule.rounds == rounds

    def test_fewer_iterations_than_a_period_are_refused(self) -> None:
        with pytest.raises(UserError, match="3 iterations are fewer than one communication period of 4"):
            Simulation(spec(rounds=None, iterations=3, period=4), images(), CPU)


class TestMetrics:
    def test_validation_metrics_come_with_a_validation_set(self) -> None:
        arrays = images(validation=15)
        _, outcome = simulate(spec(rounds=2), arrays)
        _, without = simulate(spec(rounds=2), images())
        assert {"val_auc", "val_ap", "test_auc", "test_ap"} <= outcome.metrics.keys()
        assert not [name for name in without.metrics if name.startswith("val")]

    def test_validation_samples_are_scored_not_trained_on(self) -> None:
        arrays = images(validation=15)
        simulation, outcome = simulate(spec(rounds=2), arrays)
        held = arrays.validation
        scores = simulation.problem.net.scores(
            simulation.server["x"][None], torch.tensor(arrays.x_train[held])[None]
        )
        from fedbench.objectives.metrics import auc

        expected = auc(scores[0, :, 0].detach().numpy(), arrays.y_train[held])
        assert outcome.metrics["val_auc"] == pytest.approx(expected)
        used = {position for client in arrays.clients for position in client.tolist()}
        assert not used & set(held.tolist()) and len(simulation.data.labels) == 77

    def test_devices_are_evaluated_before_the_last_averaging(self) -> None:
        arrays = images()
        simulation = Simulation(spec(rounds=1), arrays, CPU)
        clients = Simulation(spec(rounds=1), arrays, CPU).train_round()["x"]
        outcome = simulation.run()
        scores = simulation.problem.net.scores(clients, torch.tensor(arrays.x_test).expand(3, -1, -1, -1, -1))
        from fedbench.objectives.metrics import auc

        each = [auc(s[:, 0].detach().numpy(), arrays.y_test) for s in scores]
        assert outcome.metrics["device_mean_test_auc"] == pytest.approx(np.mean(each))
        assert outcome.metrics["device_var_test_auc"] == pytest.approx(np.var(each))
        assert len(set(each)) > 1

    def test_many_clients_are_not_evaluated_one_by_one(self) -> None:
        arrays = images((6,) * 17)
        _, outcome = simulate(spec(rounds=1, clients=17), arrays)
        assert not [name for name in outcome.metrics if name.startswith("device")]

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
        found = simulation.problem.client_losses(w, None)
        for client, value in zip(arrays.clients, found, strict=True):
            logits = simulation.problem.net.scores(w[None], torch.tensor(arrays.x_train[client])[None])[
                0, :, 0
            ]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, torch.tensor(arrays.y_train[client]).float()
            )
            assert float(value) == pytest.approx(float(loss), rel=1e-5)


def test_seconds_lie_beside_the_curve_one_for_each_evaluation_and_go_on_after_a_stop(tmp_path: Path) -> None:
    """Training alone: they never fall, and never exceed all seconds less those of evaluations."""
    run, checkpoint = spec(rounds=6, evaluations=3), tmp_path / "checkpoint.pt"
    rounds = iter([False, False, True])
    with pytest.raises(Stopped):
        simulate(run, images(), checkpoint_path=checkpoint, stop=lambda: next(rounds))
    _, outcome = simulate(run, images(), checkpoint_path=checkpoint)
    assert len(outcome.curve_seconds) == len(outcome.curve) == 4
    assert outcome.curve_seconds == sorted(outcome.curve_seconds)
    assert 0 <= outcome.curve_seconds[0] < outcome.curve_seconds[1]
    assert outcome.curve_seconds[-1] <= outcome.seconds - sum(outcome.evaluation_seconds[:-1])
    assert not any("seconds" in name for name in outcome.curve[0])
