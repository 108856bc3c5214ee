"""The method, the task and the dataset in examples/ that users copy keep their contracts and do what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fedbench import algorithms, tasks
from fedbench.data import datasets
from fedbench.data.prepared import load_prepared
from fedbench.spec import TaskSpec
from fedbench.task import Batch, build_network
from fedbench.testing import check_dataset, check_method, check_task, simulation

EXAMPLES = Path(__file__).parents[2] / "examples"
PARAMS, OPTIONS = {"lr": 0.1, "momentum": 0.8}, {"margin": 1.0}


@pytest.fixture(autouse=True)
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is found as if it lay in its package."""
    for package in (algorithms, tasks, datasets):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(EXAMPLES)])


def test_the_method_keeps_the_contract_and_learns() -> None:
    check_method("new_method", PARAMS)
    run = simulation("new_method", PARAMS, rounds=30).run()
    assert run.curve[0]["test_auc"] < 0.7 and run.curve[-1]["test_auc"] > 0.9


def test_the_method_without_momentum_is_fedavg() -> None:
    special = simulation("new_method", PARAMS | {"momentum": 0.0})
    known = simulation("fedavg", {"lr": 0.1})
    for run in (special, known):
        run.run()
    torch.testing.assert_close(special.server["x"], known.server["x"])


def test_the_task_keeps_the_contract_and_is_learned() -> None:
    check_task("new_task", OPTIONS)
    task = {"name": "new_task", "options": OPTIONS}
    run = simulation("fedavg", {"lr": 0.05}, task=task, rounds=30).run()
    assert run.curve[0]["test_accuracy"] < 0.7 and run.curve[-1]["test_accuracy"] > 0.9


def test_the_loss_of_the_task_at_a_score_of_0_is_the_margin_squared() -> None:
    net = build_network("mlp", (3,), 1, 0, {"hidden": []})
    batch = Batch(torch.ones(1, 4, 3), torch.tensor([[0, 1, 0, 1]]))
    task = tasks.make_task(TaskSpec(name="new_task", options={"margin": 2.0}))
    loss = task.loss(net, torch.zeros(1, net.d), batch, None)
    assert loss.tolist() == pytest.approx([4.0])


def test_the_dataset_keeps_the_contract_and_has_its_sizes(tmp_path: Path) -> None:
    check_dataset("new_dataset", tmp_path)
    data = load_prepared("new_dataset", tmp_path)
    assert data.x_train.shape == (800, 10) and data.x_test.shape == (200, 10)
    assert np.bincount(data.y_train).tolist() == [400, 400]
