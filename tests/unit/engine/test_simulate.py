"""The round loop: equal bytes, resumption, equal batches for all methods, chunks, divergence, schedules."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from world import CPU, METHODS, images, same, simulate, spec

from fedbench.data import augment
from fedbench.data.clients import Work
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.models import mlp
from fedbench.problem import State
from fedbench.spec import NetworkSpec
from fedbench.store.runs import csv_text

TWO = {"rule": "random", "clients": 2}


class TestSameWork:
    def test_all_methods_see_the_same_participants_and_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Work.batch
        log: list[tuple[Any, ...]] = []

        def spy(self: Work, step: int) -> Any:
            batch = original(self, step)
            content = batch.inputs.numpy().tobytes() + batch.labels.numpy().tobytes()
            log.append((self._purpose, self._round, tuple(self._clients), step, content))
            return batch

        monkeypatch.setattr(Work, "batch", spy)
        seen, inner = {}, {}
        for method in METHODS:
            log.clear()
            simulate(spec(method, participation=TWO, augment="crop_flip", rounds=4), images())
            seen[method] = [item for item in log if item[0] == "batches"]
            inner[method] = [item for item in log if item[0] == "inner batches"]
        # rounds x clients x steps: all differ
        assert len({content for *_, content in seen["fedavg"]}) == 4 * 2 * 4
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
        # rounds x steps x clients; neither evaluations nor the dual restart
        assert calls == [6] * (2 * 4 * 3)
        assert same(same_again.server, undisturbed.server)
        assert csv_text(outcome.curve) == csv_text(expected.curve)


class TestChunks:
    SIZES = (5, 26, 9, 13, 30, 6, 17)

    @pytest.mark.parametrize("epochs", [None, 2], ids=["period", "local epochs"])
    @pytest.mark.parametrize("method", METHODS)
    def test_stacking_clients_changes_nothing_but_rounding(self, method: str, epochs: int | None) -> None:
        arrays = images(self.SIZES)
        train: dict[str, Any] = {"rounds": 3, "evaluations": 3}
        if epochs:
            train |= {"period": None, "local_epochs": epochs}
        runs = {c: simulate(spec(method, clients=7, **train), arrays, c) for c in (1, 2, None)}
        for chunk in (2, None):
            first, many = runs[1], runs[chunk]
            servers = [simulation.server for simulation, _ in (many, first)]
            torch.testing.assert_close(*servers, rtol=1e-3, atol=1e-5, equal_nan=True)
            for mine, theirs in zip(many[1].curve, first[1].curve, strict=True):
                assert all(mine[name] == theirs[name] for name in ("samples", "floats_up", "floats_down"))
                assert mine["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-4, nan_ok=True)

    @pytest.mark.usefixtures("double", "norm")
    @pytest.mark.parametrize("epochs", [None, 2], ids=["period", "local epochs"])
    def test_padding_stays_out_of_batch_norm(self, epochs: int | None) -> None:
        arrays = images((5, 26, 9, 5), dtype=np.float64)
        train: dict[str, Any] = {"rounds": 2}
        if epochs:
            train |= {"period": None, "local_epochs": epochs}
        first, alone = simulate(spec("scaffold", clients=4, **train), arrays, 1)
        many, together = simulate(spec("scaffold", clients=4, **train), arrays, None)
        torch.testing.assert_close(many.server, first.server, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(many.state.own, first.state.own, rtol=1e-6, atol=1e-9)
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

    def test_running_statistics_break_before_the_parameters_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = spec("fedavg", network="resnet20", options={"blocks": 1}, rounds=2)
        simulation = Simulation(run, images(side=8), CPU)

        def broken() -> State:
            clients = simulation.loop.train_round(simulation.state)
            for name in simulation.method.running:
                simulation.state.server[name][0] = math.inf
            return clients

        monkeypatch.setattr(simulation, "train_round", broken)
        assert simulation.run().reason == "parameters became non-finite in round 1 of 2"

    @pytest.mark.parametrize("lr", [0.1, 1e30])
    def test_the_model_of_a_run_that_diverged_is_not_kept(self, lr: float) -> None:
        _, outcome = simulate(spec("fedavg", {"lr": lr}, rounds=1, keep_model=True), images())
        assert (outcome.model is None) == (outcome.status == "diverged") == (lr > 1)

    def test_undefined_numbers_that_are_kept_are_no_divergence(self) -> None:
        """CLIMB knows no client losses before its first dual step."""
        _, outcome = simulate(spec("climb", {"dual_every": 4}, rounds=5), images())
        assert outcome.status == "finished"
        losses = [row["client0"] for row in outcome.clients if row["quantity"] == "loss"]
        assert math.isnan(float(losses[0])) and math.isfinite(float(losses[-1]))


def test_a_run_starts_from_the_weights_that_it_names() -> None:
    """fcsg's student: one layer, bias 1; what is said at its default has the key of what is not said."""
    plain, named, xavier = (
        run.model_copy(update={"network": NetworkSpec(name="mlp", options={"hidden": []}, **weights)})
        for run in [spec("fedavg")]
        for weights in ({}, {"weights": "pytorch"}, {"weights": "xavier"})
    )
    assert plain.key == named.key != xavier.key
    start = {run.key: Simulation(run, images(), CPU).server["x"] for run in (plain, xavier)}
    assert start[xavier.key][-1] == 1 and not torch.equal(start[plain.key], start[xavier.key])


@pytest.mark.parametrize(
    "train", [{}, {"positives": 0.5}, {"participation": {"rule": "random", "clients": 2}}]
)
def test_a_run_that_ended_holds_no_data(train: dict[str, Any]) -> None:
    """Trials run one after another in a process: Python looks for cycles only now and then, gigabytes later."""
    simulation = Simulation(spec(**train), images((20, 26, 31), side=8), CPU)
    data = weakref.ref(simulation.data)
    gc.disable()
    try:
        simulation.run()
        del simulation
        assert data() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_network_that_draws_random_numbers_is_refused(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs would have equal keys and other numbers."""
    plain = mlp.build
    monkeypatch.setattr(
        mlp, "build", lambda *given, **options: plain(*given, **options).append(nn.Dropout(0.1))
    )
    with pytest.raises(UserError, match=r"network 'mlp'.* draws random numbers.*leave that out"):
        simulate(spec("fedavg"), images(), chunk)
