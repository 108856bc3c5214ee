"""MAML: its second-order gradient, its episodes, what does not fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.task import Model, Part
from fedbench.testing import check_task, simulation

OPTIONS = {"shots": 1, "queries": 2, "episodes": 3, "inner_step": 0.4, "test_steps": 2, "test_episodes": 5}
NAMED = {"maml": OPTIONS | {"ways": 3}, "sinusoids": OPTIONS | {"shots": 4, "queries": 5}}
TANH = {"name": "mlp", "options": {"hidden": [5], "activation": "tanh"}}


def few_shot(clients: int = 2, classes: int = 5, per_class: int = 6, dtype: type = np.float32) -> Arrays:
    """Clients with classes of their own; the test part has others."""
    rng = np.random.default_rng(0)
    n = classes * (clients + 1)
    y = np.repeat(np.arange(n), per_class)
    x = (rng.normal(size=(n, 1, 4, 4))[y] + 0.5 * rng.normal(size=(len(y), 1, 4, 4))).astype(dtype)
    m = clients * classes * per_class
    return Arrays(x[:m], y[:m], x[m:], y[m:], np.split(np.arange(m), clients), np.array([], int), n)


def curves(dtype: type = np.float32) -> Arrays:
    """Two clients with the curves of one amplitude each."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 12)
    x = rng.uniform(-5, 5, (120, 1)).astype(dtype)
    return Arrays(x, y, x, y, np.split(np.arange(120), 2), np.array([], int), 10)


def run_of(name: str = "maml", arrays: Arrays | None = None, chunk: int | None = 1, train: Any = None,
           network: Any = None, **options: Any) -> Simulation:  # fmt: skip
    data = arrays or (few_shot() if name == "maml" else curves())
    task = {"name": name, "options": NAMED[name] | options}
    return simulation(
        "fcsg", {"lr": 0.05}, data, Execution(chunk=chunk), network or TANH, task, **(train or {})
    )


@pytest.mark.parametrize("name", NAMED)
def test_the_contract_of_a_task_holds(name: str) -> None:
    check_task(name, NAMED[name], few_shot() if name == "maml" else curves(), TANH, lr=0.02)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", NAMED)
def test_the_gradient_is_of_second_order(name: str) -> None:
    """Against differences of the loss, whose inner gradient moves along: a first-order gradient fails by far."""
    arrays = few_shot(dtype=np.float64) if name == "maml" else curves(np.float64)
    run = run_of(name, arrays)
    batch = run.problem.task.rounds(run.data, [0, 1], 1, "batches").batch(1)
    generator = torch.Generator().manual_seed(0)
    x = 0.5 * torch.randn(2, run.problem.net.d, generator=generator)
    direction = torch.randn(2, run.problem.net.d, generator=generator)

    def loss(at: Tensor) -> Tensor:
        return run.problem.gradient(lambda w: run.problem.loss(w, batch, None), at)[1]

    gradient, _ = run.problem.gradient(lambda w: run.problem.loss(w, batch, None), x)
    h = 1e-5
    difference = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    torch.testing.assert_close((gradient * direction).sum(1), difference, rtol=1e-6, atol=1e-8)


def test_it_is_measured_in_float32_whatever_it_trains_in() -> None:
    rows = [run_of(train={"precision": precision}).run().curve[0] for precision in ("float32", "bf16")]
    assert repr(rows[0]) == repr(rows[1]), "before training"


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("network", [TANH, {"name": "conv4", "options": {"width": 3}}])
def test_a_loop_over_clients_and_episodes_gives_the_same(network: dict[str, Any]) -> None:
    arrays = few_shot(dtype=np.float64)
    if network is not TANH:
        wide = [np.kron(x, np.ones((1, 1, 4, 4))) for x in (arrays.x_train, arrays.x_test)]
        arrays = dataclasses.replace(arrays, x_train=wide[0], x_test=wide[1])
    run = run_of("maml", arrays, network=network)
    net, batch = run.problem.net, run.problem.task.rounds(run.data, [0, 1], 0, "batches").batch(0)
    x = net.initial() + 0.1 * torch.randn(2, net.d, generator=torch.Generator().manual_seed(0))
    gradient, losses = run.problem.gradient(lambda w: run.problem.loss(w, batch, None), x)
    for k in range(2):
        w = x[k].clone().requires_grad_()
        of_episodes = []
        for e in range(3):
            inner = cross_entropy(
                net.scores(w[None], batch.inner.inputs[k, e][None]), batch.inner.labels[k, e][None]
            )
            (step,) = torch.autograd.grad(inner.sum(), w, create_graph=True)
            adapted = w - 0.4 * step
            scores = net.scores(adapted[None], batch.outer.inputs[k, e][None])
            of_episodes.append(cross_entropy(scores, batch.outer.labels[k, e][None])[0])
        mean = torch.stack(of_episodes).mean()
        (expected,) = torch.autograd.grad(mean, w)
        assert float(losses[k]) == pytest.approx(float(mean.detach()), abs=1e-12)
        torch.testing.assert_close(gradient[k], expected, rtol=0, atol=1e-12)


def test_without_an_inner_step_it_is_cross_entropy_on_the_queries() -> None:
    run = run_of(inner_step=0.0)
    net, batch = run.problem.net, run.problem.task.rounds(run.data, [0], 0, "batches").batch(0)
    x = net.initial()[None]
    inputs, labels = batch.outer.inputs[0], batch.outer.labels[0]
    expected = cross_entropy(net.scores(x.expand(3, -1), inputs), labels).mean()
    assert torch.equal(run.problem.loss(x, batch, None), expected[None])


def test_episodes_hold_classes_of_one_client_and_disjoint_sets() -> None:
    arrays = few_shot()
    run = run_of(arrays=arrays, shots=2, queries=3)
    drawn = [run.problem.task.rounds(run.data, [client], r, "batches").batch(s)
             for client in (0, 1) for r in range(2) for s in range(4)]  # fmt: skip
    rows = {x.tobytes(): label for x, label in zip(arrays.x_train, arrays.y_train, strict=True)}
    for number, batch in enumerate(drawn):
        support, query = batch.inner, batch.outer
        assert support.labels[0, 0].tolist() == [0, 0, 1, 1, 2, 2] and query.labels.shape == (1, 3, 9)
        for e in range(3):
            seen = [[rows[x.tobytes()] for x in part.inputs[0, e].numpy()] for part in (support, query)]
            classes = seen[0][::2]
            assert seen == [[c for c in classes for _ in range(times)] for times in (2, 3)]
            assert len(set(classes)) == 3 and {c // 5 for c in classes} == {number // 8}
            images = [x.tobytes() for part in (support, query) for x in part.inputs[0, e].numpy()]
            assert len(set(images)) == 15
    assert len({batch.outer.inputs.numpy().tobytes() for batch in drawn}) == len(drawn)


def test_sinusoid_targets_are_points_of_the_curve() -> None:
    run = run_of("sinusoids")
    batch = run.problem.task.rounds(run.data, [1], 0, "batches").batch(0).outer
    x, y = batch.inputs[0, 0, :, 0], batch.labels[0, 0]
    errors = [float((y - 2 * torch.sin(x + phase * torch.pi / 5)).abs().max()) for phase in range(1, 6)]
    assert min(errors) < 1e-5 < sorted(errors)[1]  # client 1 has amplitude 2, one phase an episode


def test_what_is_measured_are_fixed_episodes_of_the_part() -> None:
    arrays = few_shot()
    run = run_of(arrays=arrays)
    net, task = run.problem.net, run.problem.task
    model = Model(net, net.initial(), None, run.data)
    part = Part("test", torch.from_numpy(arrays.x_test), arrays.y_test)
    first = task.measure(model, part)
    assert first == task.measure(model, part) and set(first) == {"accuracy", "loss"}
    longer = run_of(arrays=arrays, test_steps=20).problem.task.measure(model, part)
    assert longer["accuracy"] > max(first["accuracy"], 0.5)  # adapting helps on classes nobody trained on
    assert run.run().metrics["samples"] == (1 + 6 * 4) * 2 * 3 * 3 * (1 + 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ways": 1}, "ways is 1, but has to be at least 2"),
        ({"inner_step": -0.1}, "inner_step is -0.1"),
        ({"shots": 0}, "shots is 0"),
        ({"ways": 6}, r"client 0 has 5 classes of 1 \+ 2 samples .* an episode takes 6"),
        ({"queries": 6}, r"client 0 has 0 classes of 1 \+ 6 samples"),
        ({"network": {"name": "resnet20", "options": {"blocks": 1}}}, "one with running statistics is not the same"),
        ({"network": {"name": "conv4"}}, "is too small, 16 x 16 are needed"),
        ({"train": {"augment": "crop_flip"}}, r"takes no train\.augment"),
        ({"name": "sinusoids", "arrays": few_shot(per_class=10)}, "takes the points of the dataset 'sinusoids'"),
        ({"arrays": dataclasses.replace(few_shot(), validation=np.arange(6))}, "the validation part has 1 classes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run_of(**options)
