"""How steps are computed: stacked where it pays, in place, rounded, without subnormal numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.nn.functional import conv2d
from world import CPU, images, simulate, spec

from fedbench.algorithms import fedavg, local_sgdm
from fedbench.engine.loop import LONG, PLAIN, TINY, TOGETHER, choose_chunk_size, flushed, put_rows, take_rows
from fedbench.engine.simulate import Simulation
from fedbench.problem import Batch, Problem, State

NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("mlp", {"hidden": [5, 7]}),
    ("cnn", {"channels": [3, 5], "kernel": 3, "padding": 1, "hidden": [11]}),
    ("resnet20", {"blocks": 1}),
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


def chunk(
    network: str = "mlp", options: dict[str, Any] | None = None, compiling: bool = False,
    sizes: Sequence[int] = (20, 26, 31), **train: Any,
) -> Any:  # fmt: skip
    """What pays for a run, and how many parameters its network has."""
    run = spec("fedavg", network=network, options=options or {}, rounds=1, **train)
    simulation = Simulation(run, images(sizes, side=8), CPU)
    return choose_chunk_size(simulation.problem, simulation.data, compiling), simulation.problem.net.d


def test_small_plain_networks_are_stacked_on_a_cpu_and_others_are_not() -> None:
    few, d = chunk(options={"hidden": [64, 64]})
    assert TINY < d <= PLAIN and few == TOGETHER // d > 100
    more, d = chunk(options={"hidden": [400]})
    assert TINY < d <= PLAIN and 10 < more < few, "the more parameters, the fewer clients stay in the cache"
    large, d = chunk(options={"hidden": [600, 200]})
    assert d > PLAIN and large == 1
    first, d = chunk("cnn", {"channels": [16, 32], "kernel": 3, "padding": 1, "hidden": [64]})
    assert TINY < d <= PLAIN and first == 1, "convolutions of several networks are slower together"
    tiny, d = chunk(options={"hidden": [5]})
    assert d <= TINY and tiny is None


@pytest.mark.parametrize("batch", [{}, {"batch_size": None, "batches_per_epoch": 5}], ids=["size", "number"])
def test_clients_of_unequal_work_and_compiled_steps_are_not_stacked(batch: dict[str, Any]) -> None:
    epochs = {"options": {"hidden": [64, 64]}, "period": None, "local_epochs": 5, **batch}
    assert chunk(sizes=(40, 41, 44), **epochs)[0] > 100
    assert chunk(sizes=(20, 40, 90), **epochs)[0] == 1
    assert chunk(options={"hidden": [64, 64]}, compiling=True)[0] == 1


ROUNDED = {"mlp": ("mlp", {"hidden": [5]}), "norm": ("resnet20", {"blocks": 1})}


@pytest.mark.parametrize("method", ["local_sgdm", "local_scgdam"])
@pytest.mark.parametrize("chunk", [1, None], ids=["alone", "stacked"])
@pytest.mark.parametrize("network", ROUNDED)
def test_bf16_rounds_training_and_no_evaluation(network: str, chunk: int | None, method: str) -> None:
    name, options = ROUNDED[network]
    how: dict[str, Any] = {"network": name, "options": options, "rounds": 1, "period": 2, "evaluations": 1}
    (full, expected), (rounded, result) = (
        simulate(spec(method, **how, precision=precision), images(side=8), chunk)
        for precision in ("float32", "bf16")
    )
    tested = {name for name in expected.curve[0] if name.startswith("test_")}
    assert tested and all(result.curve[0][name] == expected.curve[0][name] for name in tested)
    begun = full.problem.net.initial()
    x, y = (run.server["x"][: len(begun)] for run in (full, rounded))
    assert y.dtype == torch.float32 and not torch.equal(x, y)
    moved = (x - begun).norm()
    assert 0 < (x - y).norm() < 0.5 * moved


flushes = pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor cannot flush subnormal numbers"
)


def gradient() -> float:
    """The largest entry of a convolution's gradient; its factors are normal numbers, it is not."""
    x = torch.ones(1, 2, 8, 8, requires_grad=True)
    (1e-19 * conv2d(x, torch.full((2, 2, 3, 3), 1e-21))).sum().backward()
    assert x.grad is not None
    return float(x.grad.double().max())


@flushes
def test_gradients_are_flushed_inside_and_what_was_before_comes_back_also_after_an_error() -> None:
    assert 0 < gradient() < torch.finfo(torch.float32).tiny
    with flushed():
        assert gradient() == 0
        with pytest.raises(FloatingPointError), flushed():
            raise FloatingPointError
        assert gradient() == 0
    assert gradient() > 0


@flushes
def test_clients_train_flushed_and_the_evaluation_is_not() -> None:
    simulation = Simulation(spec(rounds=2, evaluations=2), images(), CPU)
    step, evaluate, seen = simulation.method.step, simulation.evaluator.metrics, list[tuple[str, bool]]()

    def watched_step(*given: Any) -> Any:
        seen.append(("step", gradient() == 0))
        return step(*given)

    def watched_evaluation(*given: Any, **named: Any) -> Any:
        seen.append(("evaluation", gradient() == 0))
        return evaluate(*given, **named)

    object.__setattr__(simulation.method, "step", watched_step)
    object.__setattr__(simulation.evaluator, "metrics", watched_evaluation)
    simulation.run()
    assert set(seen) == {("step", True), ("evaluation", False)}


@pytest.mark.parametrize("shape", [(), (3,), (LONG,), (2, LONG)])
def test_rows_are_those_of_indexing(shape: tuple[int, ...]) -> None:
    tensor, values = torch.rand(5, *shape), torch.rand(2, *shape)
    taken = take_rows(tensor, [3, 1])
    assert torch.equal(taken, tensor[[3, 1]])
    expected = tensor.clone()
    expected[[4, 0]] = values
    put_rows(tensor, [4, 0], values)
    assert torch.equal(tensor, expected)
    before = tensor.clone()
    taken.zero_()
    assert torch.equal(tensor, before), "what was taken is a copy"
    with pytest.raises((ValueError, RuntimeError, IndexError)):
        put_rows(tensor, [0, 1, 2], values)
