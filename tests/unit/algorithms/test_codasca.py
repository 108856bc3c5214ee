"""What CODASCA is in special cases, and a saddle with a known solution that CODA+ misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from world import images, simulate, spec

from fedbench.algorithms import codasca
from fedbench.data.clients import Arrays
from fedbench.objectives.auc_minimax import auc_minimax
from fedbench.problem import State

WEIGHT_DECAY = 0.5


def both(codasca_params: dict[str, Any], arrays: Arrays, **how: Any) -> tuple[State, State]:
    """Train CODASCA and CODA+ alike and return what their servers hold."""
    params = {"server_lr": 1.0} | codasca_params
    shared = {name: value for name, value in codasca_params.items() if name in ("lr", "lr_dual", "dual_step")}
    first, _ = simulate(spec("codasca", params, **how), arrays)
    other, _ = simulate(spec("coda_plus", shared, **how), arrays)
    return first.server, other.server


@pytest.mark.usefixtures("with_norm")
@pytest.mark.parametrize("anchor", ["last", "average"])
def test_without_variates_it_is_coda_plus_bit_for_bit(monkeypatch: pytest.MonkeyPatch, anchor: str) -> None:
    def none(method: Any, problem: Any, state: State) -> State:
        return state | {"c_change": torch.zeros_like(state["c_own"])}

    train = {"rounds": 4, "decay_at": [] if anchor == "average" else [0.5]}
    with monkeypatch.context() as patch:
        patch.setattr(codasca.Method, "end", none)
        mine, plain = both({"anchor": anchor}, images(), **train)
    for name in plain:
        assert torch.equal(mine[name], plain[name]), name
    assert not torch.equal(both({}, images(), **train)[0]["x"], plain["x"])


def close(mine: State, plain: State) -> None:
    for name in ("x", "alpha", "anchor"):
        torch.testing.assert_close(mine[name], plain[name], rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("dual_step", ["batch", "running_means"])
def test_synchronised_at_each_step_it_is_coda_plus(dual_step: str) -> None:
    arrays = images((18, 22, 30), dtype=np.float64)
    close(*both({"dual_step": dual_step}, arrays, period=1, rounds=20, decay_at=[0.5]))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("period", [1, 7])
def test_with_one_client_it_is_coda_plus(period: int) -> None:
    close(*both({}, images((30,), dtype=np.float64), clients=1, period=period, rounds=6, decay_at=[0.5]))


def shifted_clients() -> Arrays:
    """Three clients whose classes lie apart: each alone would turn the separating line elsewhere."""
    rng = np.random.default_rng(0)
    x, y = [], []
    for client, positives in enumerate((4, 8, 12)):
        labels = np.repeat([1, 0], [positives, 24 - positives])
        centre = np.eye(3)[client] * 2
        x.append(rng.normal(size=(24, 3)) + np.where(labels[:, None] == 1, centre, -centre[::-1]))
        y.append(labels)
    inputs, labels = np.concatenate(x), np.concatenate(y).astype(np.int64)
    clients = list(np.arange(72).reshape(3, 24))
    return Arrays(inputs, labels, inputs, labels, clients, np.array([], int), 2)


def affine(arrays: Arrays, client: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return matrix and shift of a client's gradient, which is affine in (w, bias, a, b, alpha)."""
    inputs, labels = torch.tensor(arrays.x_train[client]), torch.tensor(arrays.y_train[client])
    prior = float((arrays.y_train == 1).mean())

    def gradient(z: Tensor) -> Tensor:
        z = z.clone().requires_grad_()
        scores = (inputs @ z[:3] + z[3])[None]
        a, b, alpha = z[4:].unbind()
        loss = auc_minimax(scores, labels[None], a[None], b[None], alpha[None], prior).sum()
        (gradient,) = torch.autograd.grad(loss + WEIGHT_DECAY / 2 * (z[:4] ** 2).sum(), z)
        return gradient.detach()

    shift = gradient(torch.zeros(7))
    return torch.stack([gradient(unit) - shift for unit in torch.eye(7)], 1), shift


def saddle(arrays: Arrays) -> Tensor:
    """Solve for the point at which the mean of the clients' gradients vanishes."""
    matrix, shift = (sum(parts) for parts in zip(*(affine(arrays, c) for c in arrays.clients), strict=True))
    return torch.linalg.solve(matrix, -shift)


def where_averaging_ends(arrays: Arrays, period: int, lr: float) -> Tensor:
    """Solve for the point that ``period`` plain local steps and an average lead back to."""
    sign = torch.ones(7)
    sign[-1] = -1
    matrices, shifts = [], []
    for client in arrays.clients:
        matrix, shift = affine(arrays, client)
        once, by = torch.eye(7) - lr * sign[:, None] * matrix, -lr * sign * shift
        power, total = torch.eye(7), torch.zeros(7)
        for _ in range(period):
            power, total = once @ power, once @ total + by
        matrices.append(power)
        shifts.append(total)
    return torch.linalg.solve(torch.eye(7) - torch.stack(matrices).mean(0), torch.stack(shifts).mean(0))


@pytest.mark.usefixtures("double")
def test_codasca_reaches_the_saddle_and_coda_plus_stalls_where_the_clients_pull_it() -> None:
    arrays, lr, period = shifted_clients(), 0.4, 5
    train = {
        "batch_size": 24, "period": period, "rounds": 90, "weight_decay": WEIGHT_DECAY,
        "options": {"hidden": []}, "evaluations": 1,
    }  # fmt: skip
    ends = []
    for method, server_lr in (("codasca", {"server_lr": 1.0}), ("coda_plus", {})):
        params = {"score": "logit", "proximal": 0.0, "lr": lr, "lr_dual": lr, **server_lr}
        simulation, _ = simulate(spec(method, params, **train), arrays, chunk=None)
        ends.append(torch.cat([simulation.server["x"], simulation.server["alpha"][None]]))
    right, wrong = saddle(arrays), where_averaging_ends(arrays, period, lr)
    assert (right - wrong).norm() > 0.1
    assert (ends[0] - right).norm() < 1e-8
    assert (ends[1] - wrong).norm() < 1e-8
