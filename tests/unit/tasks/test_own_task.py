"""A task with a loss, a sampler and a metric of its own is one file: nothing of the engine knows it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from world import PARAMS

from fedbench import tasks
from fedbench.errors import UserError
from fedbench.spec import TaskSpec
from fedbench.task import ClientData, Leaf, Model, Net, Part, stream
from fedbench.task import Task as Base
from fedbench.testing import check_task, simulation


@dataclass
class Noisy:
    """The batches of a round: the client's next samples, each with a target that noise is drawn for."""

    batches: list[tuple[Tensor, Tensor]]
    steps_of_each: Tensor
    samples: int
    unequal: bool = False

    @property
    def steps(self) -> int:
        return len(self.batches)

    def active(self, step: int) -> Tensor:
        return self.steps_of_each > step

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        return self.batches[step]


@dataclass(frozen=True)
class Task(Base):
    """Learn the mean pixel of an image from noisy targets, by least squares."""

    noise: float
    samples: int

    measures: ClassVar[tuple[str, ...]] = ("squared_error",)
    spread: ClassVar[bool] = False

    def outputs(self, arrays: Any) -> int:
        return 1

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Noisy:
        steps = data.steps(round_index)
        rows = []
        for client in clients:
            everyone = np.arange(data.sizes[client])
            drawn = data.cycle(client, everyone, self.samples, steps, purpose)
            noise = stream(data.seed, f"noise {purpose}", client, round_index).normal(
                size=(len(steps), self.samples)
            )
            inputs = data.samples(torch.from_numpy(np.stack(drawn) + data.offsets[client]))
            rows.append(
                (inputs, inputs.flatten(2).mean(2) + self.noise * torch.from_numpy(noise).to(inputs.dtype))
            )
        batches = [
            (torch.stack([x[step] for x, _ in rows]), torch.stack([y[step] for _, y in rows]))
            for step in range(len(steps))
        ]
        count = len(clients) * len(steps)
        return Noisy(batches, torch.full((len(clients),), len(steps)), count * self.samples)

    def loss(
        self, net: Net, w: Tensor | Leaf, batch: tuple[Tensor, Tensor], buffers: Tensor | None
    ) -> Tensor:
        return (net.scores(w, batch[0], buffers)[..., 0] - batch[1]).square().mean(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        error = model.outputs(part.inputs)[:, 0] - part.inputs.flatten(1).mean(1)
        return {"squared_error": float(error.square().mean())}


@pytest.fixture
def toy_task(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The task above as a file among the tasks."""
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(Path(__file__).parent)])
    monkeypatch.setitem(sys.modules, "fedbench.tasks.test_own_task", sys.modules[__name__])
    return {"name": "test_own_task", "options": {"noise": 0.1, "samples": 6}}


def test_it_holds_the_contract(toy_task: dict[str, Any]) -> None:
    check_task(**toy_task)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fedavg", {"lr": 0.05}),
        ("scaffold", {"lr": 0.05, "server_lr": 1.0}),
        ("local_sgdm", {"lr": 0.02, "momentum": 0.5}),
    ],
)
def test_it_is_learned_and_measured_its_own_way(
    toy_task: dict[str, Any], method: str, params: dict[str, float]
) -> None:
    run = simulation(method, params, task=toy_task, rounds=40)
    outcome = run.run()
    measured = [key for key in outcome.metrics if key.startswith(("test_", "device_"))]
    assert measured == ["test_squared_error"]
    assert outcome.curve[-1]["test_squared_error"] < 0.5 * outcome.curve[0]["test_squared_error"]
    assert outcome.curve[-1]["samples"] == 40 * 4 * 3 * 6


def test_mistakes_are_named(toy_task: dict[str, Any]) -> None:
    for name, options, says in (
        ("classificatio", {}, "unknown task 'classificatio'.*'classification'"),
        ("test_own_task", {"noise": 0.1}, "task 'test_own_task' needs samples: write every option"),
        ("test_own_task", {"noisy": 0.1}, "task 'test_own_task': unknown option 'noisy'.*'noise'"),
        ("test_own_task", {"noise": 0.1, "samples": 1.5}, "samples: Input should be a valid integer"),
    ):
        with pytest.raises(UserError, match=says):
            tasks.make_task(TaskSpec(name=name, options=options))


@pytest.mark.parametrize("method", ["focal_loss", "ratio_loss", "climb", "coda", "local_scgdam", "moon"])
def test_a_method_that_needs_labels_refuses_other_batches(toy_task: dict[str, Any], method: str) -> None:
    with pytest.raises(UserError, match=f"'{method}' works on samples with labels; task 'test_own_task'"):
        simulation(method, PARAMS[method], task=toy_task)
