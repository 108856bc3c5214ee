"""Average precision as a loss: its gradient in three forms, its draws, clients without positives."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from world import images, rare

from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.testing import CONV, check_task, simulation

OPTIONS = {"positives": 3, "margin": 0.1}
TASK = {"name": "average_precision", "options": OPTIONS}
INSIDE = {"name": "average_precision", "options": OPTIONS | {"positives": 0}}
"""The positives of the batch itself, as in D-AUPRC."""


def run_of(
    arrays: Arrays,
    chunk: int | None = 1,
    method: str = "fcsg",
    task: dict[str, Any] | None = TASK,
    **train: Any,
) -> Simulation:
    return simulation(method, {"lr": 0.1}, arrays, Execution(chunk=chunk), None, task, **train)


def test_the_contract_of_a_task_holds() -> None:
    unequal = rare((7, 5, 2))
    check_task("average_precision", OPTIONS, unequal)
    for positives in (0.4, 3):
        check_task("average_precision", INSIDE["options"], unequal, positives=positives)
        check_task("average_precision", INSIDE["options"], unequal, CONV, positives=positives)


def loop(scores_outer: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """The loss pair by pair."""
    total = torch.zeros(())
    for positive in scores_outer:
        u_1, u_2 = torch.zeros(()), torch.zeros(())
        for other, label in zip(scores, labels, strict=True):
            pair = max(0.1 - positive + other, torch.zeros(())) ** 2
            u_1, u_2 = u_1 + (pair if label == 1 else 0), u_2 + pair
        total = total - u_1 / u_2
    return total / len(scores_outer)


def stopped(scores_outer: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """The published form: weights p_ij without gradient, times the surrogates."""
    positive = (labels == 1).double()
    pairs = (0.1 - scores_outer[:, None] + scores).clamp(min=0) ** 2
    u_1, u_2 = (pairs * positive).mean(1, keepdim=True), pairs.mean(1, keepdim=True)
    weights = ((u_1 - positive * u_2) / u_2**2).detach()
    return (weights * pairs).mean()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("padded", [False, True])
def test_the_gradient_is_that_of_the_published_form_and_of_a_loop(padded: bool) -> None:
    """Padded: stacked with a client that has fewer positives, and one with fewer samples in a batch."""
    sizes = rare((7, 2, 4), dtype=np.float64)
    if padded:
        sizes = dataclasses.replace(sizes, clients=[sizes.clients[0], sizes.clients[1], sizes.clients[2][:6]])
    run = run_of(sizes)
    task, net = run.problem.task, run.problem.net
    clients = [0, 1, 2] if padded else [0]
    batch = task.rounds(run.data, clients, 1, "batches").batch(2)
    x = torch.randn(len(clients), net.d, generator=torch.Generator().manual_seed(0))
    gradient, losses = run.problem.gradient(lambda w: task.loss(net, w, batch, None), x)
    for row, client in enumerate(clients):
        b = min(3, int((sizes.y_train[sizes.clients[client]] == 1).sum()))
        size = run.data.batch_size(client)
        leaf = x[row : row + 1].clone().requires_grad_()
        outer = net.scores(leaf, batch.outer.inputs[row : row + 1, :b])[0, :, 0].sigmoid()
        inner = net.scores(leaf, batch.inner.inputs[row : row + 1, :size])[0, :, 0].sigmoid()
        # the positives are inner samples, too
        labels = torch.cat([torch.ones(b), batch.inner.labels[row, :size]])
        by_loop, by_stop = (form(outer, torch.cat([outer, inner]), labels) for form in (loop, stopped))
        assert float(losses[row]) == pytest.approx(float(by_loop.detach()), abs=1e-12)
        for loss in (by_loop, by_stop):
            (expected,) = torch.autograd.grad(loss, leaf, retain_graph=True)
            torch.testing.assert_close(gradient[row], expected[0], rtol=0, atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("positives", [0.4, 3])
def test_a_batch_may_have_exactly_n_positives_which_are_its_outer_samples(positives: float) -> None:
    """D-AUPRC 3f96df4, utils.py 162-191: n positives, then B - n negatives; for methods with a loss of their own, too.

    As a number a client that has fewer gives all it has; as a share some of them several times.
    """
    arrays, clients = rare((7, 2, 0), dtype=np.float64), [0, 1, 2]
    run = run_of(arrays, task=INSIDE, positives=positives)
    plain = run_of(arrays, method="fedavg", task=None, positives=positives)
    task, net = run.problem.task, run.problem.net

    def loss(batch: Any, w: Any) -> Tensor:
        return task.loss(net, w, batch, None)

    drawn = task.rounds(run.data, clients, 0, "batches").samples
    assert 4 * task.first(run.data, clients, "first batches").samples == drawn
    for step in range(4):
        batch, theirs = (
            of.problem.task.rounds(of.data, clients, 1, "batches").batch(step) for of in (run, plain)
        )
        assert torch.equal(batch.inner.inputs, theirs.inputs)
        assert torch.equal(batch.inner.labels, theirs.labels)
        x = torch.randn(3, net.d, generator=torch.Generator().manual_seed(step))
        gradient, losses = run.problem.gradient(functools.partial(loss, batch), x)
        for row, n in enumerate((3, 3 if positives == 0.4 else 2)):
            places = run.data.plan(row, 1)[step]
            labels = torch.tensor(arrays.y_train[arrays.clients[row]][places])
            assert labels.tolist() == [1] * n + [0] * 5
            leaf = x[row : row + 1].clone().requires_grad_()
            inputs = torch.tensor(arrays.x_train[arrays.clients[row]][places])
            scores = net.scores(leaf, inputs[None])[0, :, 0].sigmoid()
            by_loop, by_stop = (form(scores[:n], scores, labels) for form in (loop, stopped))
            assert float(losses[row]) == pytest.approx(float(by_loop.detach()), abs=1e-12)
            for value in (by_loop, by_stop):
                (expected,) = torch.autograd.grad(value, leaf, retain_graph=True)
                torch.testing.assert_close(gradient[row], expected[0], rtol=0, atol=1e-12)
        assert losses[2] == 0 and not gradient[2].any()
    assert run.run().status == "finished"


def test_the_inner_batch_is_the_one_that_other_methods_see() -> None:
    run = run_of(rare((7, 5)))
    batch = run.problem.task.rounds(run.data, [0, 1], 2, "batches").batch(3)
    plain = run.data.work([0, 1], 2, "batches").batch(3)
    assert torch.equal(batch.inner.inputs, plain.inputs) and torch.equal(batch.inner.labels, plain.labels)


def test_each_positive_is_used_once_a_pass() -> None:
    run = run_of(rare((6, 9)))
    for client, number in ((0, 6), (1, 9)):
        drawn = []
        for r in range(3):
            rounds = run.problem.task.rounds(run.data, [client], r, "batches")
            drawn += [rounds.batch(step).outer for step in range(4)]
        rows = [x.numpy().tobytes() for batch in drawn for x in batch.inputs[0]]
        assert all((batch.labels == 1).all() for batch in drawn)
        for at in range(0, 36, number):
            assert len(set(rows[at : at + number])) == number


def test_a_client_without_positives_stands_still_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    run = run_of(rare((5, 0)), chunk=None)
    assert "1 of 2 clients have no positive sample and learn nothing: 1" in caplog.text
    task, net = run.problem.task, run.problem.net
    batch = task.rounds(run.data, [0, 1], 0, "batches").batch(0)
    gradient, losses = run.problem.gradient(
        lambda w: task.loss(net, w, batch, None), net.initial().expand(2, -1)
    )
    assert losses[1] == 0 and not gradient[1].any() and gradient[0].any()
    assert run.run().metrics["samples"] == (1 + 6 * 4) * (8 + 3 + 8)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("state", ["own", "shared"])
def test_the_inner_state_is_the_mean_over_positives_alone(state: str) -> None:
    """Clients with fewer positives than a batch has places are padded; one without any keeps the state."""
    params = {"lr": 0.1, "beta_in": 0.6, "state": state}
    arrays = rare((7, 2, 0), dtype=np.float64)
    run = simulation("local_scgd", params, arrays, Execution(chunk=None), None, TASK)
    task, net, method = run.problem.task, run.problem.net, run.method
    batch = task.rounds(run.data, [0, 1, 2], 1, "batches").batch(2)
    x, s = net.initial().expand(3, -1), torch.tensor([0.3, 0.5]).expand(3, -1)
    gradient, new, _ = method.compositional(run.problem, {"s": s}, x, batch, 0.6)
    values = task.inner(net, x, batch, None)
    for client, positives in enumerate((3, 2)):
        mean = torch.stack([*values[client, :positives]]).mean(0)
        torch.testing.assert_close(new[client], 0.4 * s[0] + 0.6 * mean, rtol=0, atol=1e-12)
        assert gradient[client].any()
    assert torch.equal(new[2], s[2]) and not gradient[2].any()


def test_it_ranks_and_is_measured_like_classification() -> None:
    outcome = run_of(rare((7, 5, 6)), rounds=2).run()
    assert {"test_auc", "test_ap"} <= outcome.metrics.keys()


@pytest.mark.parametrize(
    ("arrays", "given", "says"),
    [
        (images(n_classes=3), {}, "these are 3 classes"),
        (rare((0, 0)), {}, "no client has a positive sample"),
        (rare((5, 4)), {"period": None, "local_epochs": 1}, r"give train\.period"),
        (rare((5, 4)), {"task": INSIDE}, r"say by train\.positives"),
        (rare((5, 4)), {"task": TASK | {"options": OPTIONS | {"positives": -1}}}, "positives is -1"),
        (rare((5, 4)), {"task": TASK | {"options": OPTIONS | {"margin": 0.0}}}, "margin"),
    ],
)
def test_what_does_not_fit_is_named(arrays: Arrays, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run_of(arrays, **given)


def test_inputs_may_be_normalised_as_in_the_authors_program() -> None:
    """Those of batches, positives drawn beside them and the test part (D-AUPRC 3f96df4, dist_data.py 33-48)."""
    arrays = rare((7, 5, 2))
    by_hand = dataclasses.replace(
        arrays,
        x_train=(arrays.x_train - np.float32(0.1307)) / np.float32(0.3081),
        x_test=(arrays.x_test - np.float32(0.1307)) / np.float32(0.3081),
    )
    asked = run_of(arrays, rounds=3, normalize={"mean": [0.1307], "std": [0.3081]})
    same, plain = (run_of(data, rounds=3) for data in (by_hand, arrays))
    results = [run.run().metrics["test_ap"] for run in (asked, same, plain)]
    assert abs(results[0] - results[1]) < 1e-6 and abs(results[0] - results[2]) > 1e-4
    assert torch.allclose(asked.server["x"], same.server["x"], atol=1e-6)
