"""Steps that overwrite the parameters they were given: the same bytes, and nobody loses what they still need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from world import CPU, images, simulate, spec

from fedbench.algorithms import fedavg, local_sgdm
from fedbench.engine.simulate import Simulation
from fedbench.problem import Batch, Problem, State

NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("mlp", {"hidden": [5, 7]}),
    ("cnn", {"channels": [3, 5], "kernel": 3, "padding": 1, "hidden": [11]}),
    ("resnet20", {}),
]


@pytest.mark.parametrize(("network", "options"), NETWORKS)
@pytest.mark.parametrize(
    ("method", "module"),
    [("fedavg", fedavg), ("local_sgdm", local_sgdm), ("moon", fedavg), ("fednova", fedavg)],
)
@pytest.mark.parametrize(
    "train", [{}, {"weight_decay": 0.1}, {"clip_norm": 0.5}, {"period": None, "local_epochs": 1}]
)
def test_the_bytes_are_those_of_steps_that_return_new_parameters(
    network: str, options: dict[str, Any], method: str, module: Any, train: dict[str, Any], monkeypatch: Any
) -> None:
    run = spec(method, network=network, options=options, **{"rounds": 2, "period": 2, **train})
    arrays = images((8, 10, 12), test=12, side=8)
    overwriting, _ = simulate(run, arrays)
    monkeypatch.setattr(module.Method, "overwrites", ())
    pure, _ = simulate(run, arrays)
    for name, tensor in pure.server.items():
        assert tensor.numpy().tobytes() == overwriting.server[name].numpy().tobytes(), name


@pytest.mark.parametrize("method", ["fedavg", "local_sgdm"])
def test_parameters_are_overwritten_in_a_run_and_not_by_a_step_alone(method: str) -> None:
    """Both halves: a run is fast because of it, and whoever calls a step keeps what was put in."""
    simulation = Simulation(spec(method), images((24, 24)), CPU)
    problem, step = simulation.loop._problem, simulation.method.step
    batch = problem.task.rounds(simulation.data, [0], 0, "batches").batch(0)
    state = {name: tensor[None].clone() for name, tensor in simulation.server.items()}
    before = {name: tensor.clone() for name, tensor in state.items()}
    new = step(problem, state, [batch], 1.0)
    assert not torch.equal(new["x"], state["x"])
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())
    problem.overwrite = True
    assert step(problem, state, [batch], 1.0)["x"] is state["x"]
    assert torch.equal(state["x"], new["x"])


def test_a_round_leaves_the_servers_parameters_and_what_a_client_remembers(monkeypatch: Any) -> None:
    seen = list[tuple[torch.Tensor, torch.Tensor]]()

    @dataclass(frozen=True)
    class Remembering(fedavg.Method):
        def begin(self, problem: Problem, state: State) -> State:
            return state | {"start": state["x"]}

        def end(self, problem: Problem, state: State) -> State:
            seen.append((state["start"].clone(), state["x"].clone()))
            return state

    assert Remembering.overwrites == ("x",)
    monkeypatch.setattr(fedavg, "Method", Remembering)
    simulation = Simulation(spec("fedavg"), images(), CPU)
    start = simulation.server["x"].clone()
    simulation.train_round()
    assert len(seen) == 3
    for began, ended in seen:
        assert torch.equal(began[0], start) and not torch.equal(began, ended)


def test_a_step_of_ones_own_may_compare_old_and_new(monkeypatch: Any) -> None:
    """Inherited permission to overwrite would make the difference 0 without a word."""
    moved = list[float]()

    @dataclass(frozen=True)
    class Comparing(fedavg.Method):
        def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
            new = super().step(problem, state, batches, decay)
            moved.append(float((new["x"] - state["x"]).norm()))
            return new

    assert Comparing.overwrites == ()
    monkeypatch.setattr(fedavg, "Method", Comparing)
    Simulation(spec("fedavg"), images((24, 24, 24)), CPU).train_round()
    assert len(moved) == 12 and min(moved) > 0
