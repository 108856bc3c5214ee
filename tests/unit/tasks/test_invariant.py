"""Invariant logistic regression: what it is without noise, its bias, its gradient, its draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from world import images, points

from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.task import Model, Part
from fedbench.testing import check_task, simulation

OPTIONS = {"sigma": 0.8, "copies": 3, "first_samples": 5, "penalty_weight": 0.01, "penalty_gamma": 10.0}
LINEAR = {"name": "mlp", "options": {"hidden": []}}


def run_of(
    method: str = "fcsg", params: Any = None, arrays: Any = None, train: Any = None, **options: Any
) -> Simulation:
    task = {"name": "invariant", "options": OPTIONS | options}
    return simulation(
        method, params or {"lr": 0.1}, arrays or points(), network=LINEAR, task=task, **(train or {})
    )


def test_the_contract_of_a_task_holds() -> None:
    check_task("invariant", OPTIONS, points(dtype=np.float32), LINEAR)


@pytest.mark.usefixtures("double")
def test_without_noise_it_is_cross_entropy_and_a_penalty() -> None:
    run = run_of(sigma=0.0)
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    batch = run.problem.task.rounds(run.data, [0, 1], 0, "batches").batch(2)
    plain = cross_entropy(run.problem.scores(x, batch.outer, None), batch.outer.labels)
    penalty = 0.01 * (10 * x**2 / (1 + 10 * x**2)).sum(1)
    torch.testing.assert_close(run.problem.loss(x, batch, None), plain + penalty, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("double")
def test_the_bias_of_the_gradient_falls_like_one_over_the_copies() -> None:
    """m (grad F_m - grad F) is constant: the mean is inside the logistic function. Outside, it would not fall."""
    rng = np.random.default_rng(0)
    a, sigma, n = np.array([1.0, -0.5]), 1.0, 400_000
    w = np.array([0.8, 1.2])

    def gradient(copies: int) -> np.ndarray:
        """The mean gradient over many draws of one point of label 1; the noise enters by its mean, N(0, sigma^2/m)."""
        eta = a + sigma / np.sqrt(copies) * rng.normal(size=(n, 2))
        eta = np.concatenate([eta, 2 * a - eta])  # antithetic
        return (-eta / (1 + np.exp(eta @ w))[:, None]).mean(0)

    exact = -a / (1 + np.exp(a @ w))
    scaled = [m * np.linalg.norm(gradient(m) - exact) for m in (8, 32, 128)]
    assert max(scaled) / min(scaled) < 1.1

    run = run_of(arrays=dataclasses.replace(points(features=2), x_train=np.tile(a, (77, 1)), y_train=np.ones(77, int)),
                 sigma=sigma, copies=8, penalty_weight=0.0, train={"batch_size": 20, "period": 1000})  # fmt: skip
    rounds = run.problem.task.rounds(run.data, [0], 0, "batches")
    x = torch.tensor([[0.8, 1.2, 0.0]])
    steps = [
        run.problem.gradient(lambda p, s=step: run.problem.loss(p, rounds.batch(s), None), x)[0][0]
        for step in range(1000)
    ]
    result = torch.stack(steps).mean(0)
    assert 8 * np.linalg.norm(result[:2].numpy() - exact) == pytest.approx(scaled[0], rel=0.25)


@pytest.mark.usefixtures("double")
def test_metrics_are_of_the_exact_objective() -> None:
    run = run_of()
    w = torch.tensor([0.6, -0.2, 0.4, 0.1])
    arrays = points()
    inputs, labels = torch.from_numpy(arrays.x_test), torch.from_numpy(arrays.y_test)
    metrics = run.problem.task.measure(
        Model(run.problem.net, w, None, run.data), Part("test", inputs, arrays.y_test)
    )
    z = torch.cat([inputs, torch.ones(len(inputs), 1)], 1)
    sign = 2 * labels - 1
    margin = sign * (z @ w)
    penalty = 0.01 * (10 * w**2 / (1 + 10 * w**2)).sum()
    gradient = -(torch.sigmoid(-margin) * sign) @ z / len(z) + 0.01 * 20 * w / (1 + 10 * w**2) ** 2
    assert metrics == pytest.approx(
        {
            "accuracy": float((margin > 0).double().mean()),
            "loss": float(torch.log1p(torch.exp(-margin)).mean() + penalty),
            "gradient_norm": float(gradient.norm()),
        },
        rel=1e-12,
    )


def copies(run: Simulation, clients: list[int], round_index: int, step: int) -> Tensor:
    return run.problem.task.rounds(run.data, clients, round_index, "batches").batch(step).inner.inputs


def test_noise_is_each_clients_own_whoever_is_stacked() -> None:
    run = run_of(arrays=points((20, 26, 5), dtype=np.float32))  # the third has a smaller batch
    together = copies(run, [0, 1, 2], 1, 2)
    for client, size in enumerate((8, 8, 5)):
        assert torch.equal(together[client, :size], copies(run, [client], 1, 2)[0])
    assert not torch.equal(together[0], together[1])
    noise = together - run.data.work([0, 1, 2], 1, "batches").batch(2).inputs[:, :, None]
    assert noise[0, 0].std() > 0.2  # each copy its own
    assert not torch.equal(copies(run, [0], 1, 1), copies(run, [0], 1, 2))
    assert not torch.equal(copies(run, [0], 0, 2), copies(run, [0], 1, 2))


def test_samples_are_all_that_is_drawn() -> None:
    outcome = run_of(arrays=points(dtype=np.float32), train={"rounds": 2}).run()
    assert outcome.metrics["samples"] == 3 * (5 + 2 * 4 * 8) * (1 + 3)
    assert {name for name in outcome.metrics if name.startswith("test_")} == {
        "test_accuracy", "test_loss", "test_gradient_norm",
    }  # fmt: skip
    assert not any(name.startswith("device_") for name in outcome.metrics)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"copies": 0}, "copies is 0, but has to be at least 1"),
        ({"sigma": -1.0}, "sigma is -1"),
        ({"first_samples": 0}, "first_samples is 0"),
        ({"first_samples": 25}, "a client has fewer than first_samples = 25 samples"),
        ({"arrays": images()}, "takes vectors of two classes, such as the dataset 'ilr'"),
        ({"train": {"augment": "crop_flip"}}, r"train\.augment, train\.normalize and train\.noise"),
        ({"train": {"period": None, "local_epochs": 1}}, r"give train\.period"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run_of(**{"arrays": points(dtype=np.float32)} | options).run()
