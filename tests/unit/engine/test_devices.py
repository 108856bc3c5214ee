"""The way of tensors through every method on one device, checked without a graphics card, and with one where it is.

On PyTorch's ``meta`` device tensors have shapes and no values, and an operation on it and the CPU together fails.
"""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from world import CONDITIONAL, CPU, METHODS, images, points, simulate, spec

from fedbench import testing
from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution
from fedbench.engine.recorder import Recorder
from fedbench.engine.simulate import Simulation
from fedbench.task import Model, Rounds

META = torch.device("meta")
SIZES = (20, 26, 31, 12)
LINEAR = {"name": "mlp", "options": {"hidden": []}}
EPISODES = {"shots": 1, "queries": 2, "episodes": 2, "inner_step": 0.4, "test_steps": 1, "test_episodes": 2}


def episodes(classes: int, shape: tuple[int, ...]) -> Arrays:
    """Two clients with ten samples of each of their classes."""
    y = np.repeat(np.arange(2 * classes), 10)
    x = np.random.default_rng(0).normal(size=(len(y), *shape)).astype(np.float32)
    return Arrays(x, y, x, y, np.split(np.arange(len(y)), 2), np.array([], int), 2 * classes)


NESTED: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "invariant": (
        lambda: points(dtype=np.float32),
        {"sigma": 0.8, "copies": 3, "first_samples": 5, "penalty_weight": 0.01, "penalty_gamma": 10.0},
        LINEAR,
    ),
    "average_precision": (lambda: images((20, 26)), {"positives": 2, "margin": 1.0}, testing.CONV),
    "maml": (lambda: episodes(4, (1, 6, 6)), {"ways": 3, **EPISODES}, LINEAR),
    "sinusoids": (lambda: episodes(5, (1,)), EPISODES, LINEAR),
}
"""Of each task with nested draws: data, options and a network."""


class Moved:
    """A round's batches, drawn where labels have values and handed on without."""

    def __init__(self, work: Rounds) -> None:
        self._work = work
        self.steps, self.samples, self.unequal = work.steps, work.samples, work.unequal
        self.steps_of_each = work.steps_of_each.to(META)

    def active(self, step: int) -> torch.Tensor:
        return self._work.active(step).to(META)

    def batch(self, step: int) -> Any:
        return moved(self._work.batch(step))


def moved(part: Any) -> Any:
    if isinstance(part, torch.Tensor):
        return part.to(META)
    if isinstance(part, dict):
        return {name: moved(each) for name, each in part.items()}
    return type(part)(*map(moved, part)) if isinstance(part, tuple) else part


def on_meta(
    method: str, task: str | None, chunk: int | None, monkeypatch: pytest.MonkeyPatch, **train: Any
) -> Simulation:
    """Set a run up, then move its state and its clients' data; what is counted is left out, it has no value here."""
    how = Execution(chunk=chunk)
    if task is None:
        run = Simulation(spec(method, clients=4, **train), images(SIZES), CPU, how)
    else:
        arrays, options, network = NESTED[task]
        described = {"name": task, "options": options}
        params = CONDITIONAL[method]
        run = testing.simulation(method, params, arrays(), how, network, described, batch_size=4, **train)
    data, local, kind = run.data, copy.copy(run.data), type(run.problem.task)
    counts = torch.empty(len(data.sizes), data.n_classes, dtype=torch.int64, device=META)
    run.problem.class_counts = lambda: counts
    for name in ("rounds", "first"):
        draw = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda self, _, *rest, d=draw: Moved(d(self, local, *rest)), raising=False
        )
    data.device, data.inputs, data.labels = META, moved(data.inputs), moved(data.labels)
    run.state.server, run.state.own = moved(run.state.server), moved(run.state.own)
    monkeypatch.setattr(Recorder, "trained", lambda *counted: None)
    return run


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize(
    ("method", "task"),
    [*((method, None) for method in METHODS), *((method, task) for method in CONDITIONAL for task in NESTED)],
)
def test_clients_stay_on_their_device(
    method: str, task: str | None, chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first draw to the end of a round; with nested draws, of every task that has them."""
    ways = [{"weight_decay": 0.1}]
    if task is None:
        ways = [{}, {"period": None, "local_epochs": 1, "weight_decay": 0.1, "clip_norm": 1.0}]
    for train in ways:
        with monkeypatch.context() as patch:
            run = on_meta(method, task, chunk, patch, **train)
            patch.setattr(torch.Tensor, "tolist", lambda tensor: [0] * tensor.numel())
            clients = [*range(len(run.data.sizes))]
            result = run.loop._train_chunk(run.state, [1] if chunk == 1 else clients)
            assert {tensor.device.type for tensor in result.values()} == {"meta"}


def test_an_operation_on_two_devices_fails_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above relies on."""
    run = on_meta("fedavg", None, 1, monkeypatch)
    run.state.server["x"] = torch.zeros(run.problem.net.d)
    with pytest.raises(RuntimeError, match="device"):
        run.loop._train_chunk(run.state, [1])


def as_if_on_a_gpu(**train: Any) -> Simulation:
    """Set a run up as on a GPU; to be called under a FakeTensorMode. Three classes: a prior is counted from values."""
    arrays = images(SIZES, validation=8, n_classes=3)
    if train.pop("stored", None) == "bytes":
        parts = {"x_train": arrays.x_train.astype(np.uint8), "x_test": arrays.x_test.astype(np.uint8)}
        arrays = dataclasses.replace(arrays, **parts)
    how = Execution(chunk=None, inputs=train.pop("inputs", "device"))
    return Simulation(spec("fedavg", clients=4, **train), arrays, torch.device("cuda"), how)


@pytest.mark.parametrize(
    "train",
    [
        {},
        {"stored": "bytes", "normalize": {"mean": [0.2], "std": [0.5]}},
        {"stored": "bytes", "augment": "crop_flip"},
        {"period": None, "local_epochs": 1},
    ],
    ids=["floats", "normalised bytes", "augmented", "unequal clients"],
)
def test_batches_are_made_on_the_gpu(train: dict[str, Any]) -> None:
    """Gathered, scaled, normalised, augmented and padded there; what the server draws for itself too."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        data = as_if_on_a_gpu(**train).data
        work = data.work([0, 1, 2, 3], 0, "batches")
        made = [work.batch(step) for step in range(work.steps)]
        made += [data.first([0, 3], "first").batch(0), data.draw(1, 5)]
        result = [part for batch in made for part in batch if part is not None]
        result += [work.active(0), work.steps_of_each]
        assert {tensor.device.type for tensor in result} == {"cuda"}
        assert {batch.inputs.dtype for batch in made} == {torch.float32}
        with pytest.raises(RuntimeError, match="device"):
            data.samples(torch.zeros(1, 2, dtype=torch.int64))  # an index that was left behind


@pytest.mark.parametrize("augment", ["none", "crop_flip"])
def test_batches_from_the_file_go_to_the_gpu(augment: str) -> None:
    """They are read here by a thread, as bytes, and scaled, normalised and augmented there."""
    with FakeTensorMode(allow_non_fake_inputs=True):  # what a thread reads is real
        train = {"stored": "bytes", "augment": augment, "normalize": {"mean": [0.2], "std": [0.5]}}
        run = as_if_on_a_gpu(inputs="host", **train)
        work = run.data.work([0, 1, 2, 3], 0, "batches")
        made = [work.batch(step) for step in range(work.steps)]
        assert {part.device.type for batch in made for part in batch if part is not None} == {"cuda"}
        assert {batch.inputs.dtype for batch in made} == {torch.float32} and len(made) == 4
        for part in run.evaluator._parts.values():
            assert {chunk.device.type for chunk in part.inputs.split(7)} == {"cuda"}
            assert run.data.prepare(part.inputs).device.type == "cuda"


@pytest.mark.parametrize("network", [("mlp", {"hidden": [5]}), ("resnet20", {"blocks": 1})])
def test_models_are_evaluated_on_the_gpu(
    network: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On test and validation data, and on what clients hold; whether scores are finite has no answer here."""
    monkeypatch.setattr(torch, "isfinite", lambda scores: SimpleNamespace(all=lambda: True))
    with FakeTensorMode(allow_non_fake_inputs=False):
        run = as_if_on_a_gpu(network=network[0], options=network[1])
        evaluator, (x, buffers) = run.evaluator, run.method.points(run.server)[""]
        model = Model(run.problem.net, x, buffers, run.data)
        assert evaluator._parts.keys() == {"test", "val"}
        for part in evaluator._parts.values():
            scores = model.outputs(part.inputs)
            assert scores.device.type == "cuda" and scores.shape == (len(part.labels), 3)
        losses = evaluator.client_losses(x, buffers)
        assert losses.device.type == "cuda" and losses.shape == (4,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", METHODS)
def test_a_card_gives_what_the_processor_gives(method: str, chunk: int | None) -> None:
    run = spec(method, clients=4, rounds=3)
    local, _ = simulate(run, images(SIZES))
    elsewhere = Simulation(run, images(SIZES), torch.device("cuda"), Execution(chunk=chunk))
    assert elsewhere.run().status == "finished"
    copied = {name: tensor.cpu() for name, tensor in elsewhere.server.items()}
    torch.testing.assert_close(copied, local.server, rtol=1e-3, atol=1e-4, equal_nan=True)
