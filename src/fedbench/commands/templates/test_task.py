"""ExampleName: the contract of every task, and what is particular to this one."""

from __future__ import annotations

import pytest
import torch

from fedbench.specs import TaskSpec
from fedbench.task import Batch, build_network
from fedbench.tasks import make
from fedbench.testing import check_task, simulation

OPTIONS = {"margin": 1.0}


def test_the_contract_of_a_task_holds() -> None:
    check_task("example_name", OPTIONS)


def test_it_is_learned() -> None:
    task = {"name": "example_name", "options": OPTIONS}
    run = simulation("fedavg", {"lr": 0.05}, task=task, rounds=30).run()
    assert run.curve[0]["test_accuracy"] < 0.7 and run.curve[-1]["test_accuracy"] > 0.9


def test_the_loss_at_a_point_that_is_known() -> None:
    """A score of 0 is short by the whole margin; replace it by a value of your loss."""
    net = build_network("mlp", (3,), 1, 0, {"hidden": []})
    batch = Batch(torch.ones(1, 4, 3), torch.tensor([[0, 1, 0, 1]]))
    task = make(TaskSpec(name="example_name", options={"margin": 2.0}))
    loss = task.loss(net, torch.zeros(1, net.d), batch, None)
    assert loss.tolist() == pytest.approx([4.0])
