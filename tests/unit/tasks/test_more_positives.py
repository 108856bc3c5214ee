"""Baselines of the average precision draw what it draws: the same samples, step by step, and count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_average_precision import TASK as AP
from world import images, rare

from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.testing import CONV, check_task, simulation

TASK = {"name": "more_positives", "options": {"positives": 3}}
CODASCA = {
    "lr": 0.1, "lr_dual": 0.1, "proximal": 0.0, "score": "sigmoid", "dual_step": "batch", "server_lr": 1.0,
    "variates": "both", "anchor": "last",
}  # fmt: skip


def run_of(method: str, params: dict[str, Any], task: dict[str, Any]) -> Simulation:
    return simulation(method, params, rare((7, 2, 0)), task=task)


def test_the_contract_of_a_task_holds() -> None:
    check_task("more_positives", TASK["options"], rare((7, 5, 2)))
    check_task("more_positives", TASK["options"], rare((7, 5, 4)), CONV)


def test_its_batches_hold_the_samples_of_the_average_precision() -> None:
    plain, nested = run_of("fedavg", {"lr": 0.1}, TASK), run_of("fcsg", {"lr": 0.1}, AP)
    for r, clients in ((0, [0]), (3, [0, 1, 2])):
        mine, theirs = (run.problem.task.rounds(run.data, clients, r, "batches") for run in (plain, nested))
        assert (mine.steps, mine.samples) == (theirs.steps, theirs.samples)
        for step in range(mine.steps):
            batch, pair = mine.batch(step), theirs.batch(step)
            assert torch.equal(batch.inputs, torch.cat([pair.outer.inputs, pair.inner.inputs], 1))
            assert torch.equal(batch.labels, torch.cat([pair.outer.labels, pair.inner.labels], 1))
            for row, client in enumerate(clients):
                present = 8 + min(3, (7, 2, 0)[client])
                weight = batch.weight[row]
                assert int((weight > 0).sum()) == present and weight.max() == pytest.approx(1 / present)
    for run in (plain, run_of("codasca", CODASCA, TASK)):
        assert run.run().metrics["samples"] == 6 * 4 * (11 + 10 + 8)


def test_with_clients_weighted_by_samples_the_prior_is_that_of_all_batches() -> None:
    arrays = images((20, 60), dtype=np.float32)
    shares = []
    for client in arrays.clients:
        n, positives = len(client), int(arrays.y_train[client].sum())
        shares.append((3 + 8 * positives / n) / 11)
    for weights, expected in (("equal", np.mean(shares)), ("samples", np.average(shares, weights=[20, 60]))):
        run = simulation("fedavg", {"lr": 0.1}, arrays, task=TASK, prior="client", weights=weights)
        assert run.problem.prior == pytest.approx(expected)


def test_every_method_of_the_tables_on_average_precision_draws_alike() -> None:
    config = load_config(overrides={"scale": "reduced"})
    runs = [cell.runs[0] for cell in Plan(config, "fcsg").cells("tableA2")]
    assert len(runs) == 24
    for run in runs:
        assert run.task is not None and run.task.options["positives"] == 3
        assert run.task.name == ("average_precision" if "fcsg" in run.method else "more_positives")


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("fedavg", {"period": None, "local_epochs": 1}, r"give train\.period"),
        ("fedavg", {"positives": 2}, r"leave out train\.positives"),
        ("fedavg", {"network": CONV}, "fewer than 3 positives, and padding would enter batch-norm"),
        ("fcsg", {"network": CONV, "task": AP}, "fewer than 3 positives, and padding would enter batch-norm"),
        ("fedavg", {"arrays": images(n_classes=3)}, "for two classes, and the data have 3"),
        ("fedavg", {"task": TASK | {"options": {"positives": 0}}}, "positives is 0"),
    ],
)
def test_what_does_not_fit_is_named(method: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        simulation(method, {"lr": 0.1}, **{"arrays": rare((7, 2, 4)), "task": TASK} | given)
