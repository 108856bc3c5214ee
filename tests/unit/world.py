"""A small federated world: synthetic clients, a tiny network with batch-norm, and runs of methods on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution, Outcome, Progress
from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec

CPU = torch.device("cpu")

AUC = {"lr": 0.5, "lr_dual": 0.4, "score": "sigmoid", "dual_step": "batch"}
RATIO = {
    "n_aux": 4,
    "ratio_alpha": 0.9,
    "ratio_beta": 0.3,
    "ratio_max": 20.0,
    "ratio_undefined": 10.0,
    "dominance": 0.8,
}
MEAN, SUMS = {**RATIO, "form": "climb"}, {**RATIO, "form": "wang"}
ADAPTIVE = {"server_lr": 0.3, "beta1": 0.6, "beta2": 0.8, "tau": 0.05}
DUALS = {"dual_lr": 3.0, "tolerance": 0.01, "dual_scale": "paper", "dual_every": 2, "dual_max": 1.5}

PARAMS: dict[str, dict[str, Any]] = {
    "fedavg": {"lr": 0.2},
    "fedprox": {"lr": 0.2, "mu": 0.7},
    "adam": {"lr": 0.02, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3},
    "scaffold": {"lr": 0.2, "server_lr": 0.8},
    "a_fedavg": {"lr": 0.2, "kappa": 1.4},
    "a_scaffold": {"lr": 0.2, "kappa": 1.4},
    "fednova": {"lr": 0.2},
    "feddyn": {"lr": 0.2, "alpha": 0.6},
    "fedadam": {"lr": 0.2, **ADAPTIVE},
    "fedyogi": {"lr": 0.2, **ADAPTIVE},
    "fedlc": {"lr": 0.2, "temperature": 0.8},
    "moon": {"lr": 0.2, "mu": 2.0, "temperature": 0.5},
    "focal_loss": {"lr": 0.2, "gamma": 2.0},
    "ratio_loss": {"lr": 0.2, "renew_every": 2, **MEAN},
    "climb": {"lr": 0.2, **DUALS},
    "climb_scaffold": {"lr": 0.2, "server_lr": 0.8, **DUALS},
    "local_sgdm": {"lr": 0.1, "momentum": 0.8},
    "local_sgdm_cw": {"lr": 0.1, "momentum": 0.8, "power": 0.6},
    "local_sgdm_rl": {"lr": 0.1, "momentum": 0.8, **SUMS},
    "coda_plus": {**AUC, "proximal": 0.3},
    "coda": {**AUC, "proximal": 0.3, "restart_samples": 12},
    "codasca": {**AUC, "proximal": 0.3, "server_lr": 0.8, "variates": "both", "anchor": "last"},
    "pairwise": {
        "lr": 0.3, "loss": "sigmoid", "margin": 1.0, "temperature": 0.3, "slope": 10.0, "q": 3.0, "score": "sigmoid",
        "passive": 3, "opening": 10, "pool": "cycle", "share": "client",
    },
    "local_sgdam": {**AUC, "beta_x": 0.3, "beta_y": 0.6},
    "local_scgdam": {**AUC, "beta_x": 0.3, "beta_y": 0.6, "alpha_h": 0.7, "rho": 0.4, "hvp": "exact"},
}  # fmt: skip
"""Hyper-parameters of every method, large enough that each term matters within a few rounds."""

CONDITIONAL: dict[str, dict[str, Any]] = {
    "fcsg": {"lr": 0.2},
    "fcsg_m": {"lr": 0.2, "beta": 0.3},
    "acc_fcsg_m": {"lr": 0.2, "beta": 0.3, "anchor": "local"},
    "local_scgd": {"lr": 0.2, "beta_in": 0.6, "state": "own"},
    "local_scgdm": {"lr": 0.2, "beta": 0.3, "beta_in": 0.6, "state": "own"},
}
"""Those for nested draws, which have tests of their own (test_fcsg.py)."""

METHODS = tuple(PARAMS)


def images(
    sizes: Sequence[int] = (20, 26, 31), test: int = 60, side: int = 6, validation: int = 0, n_classes: int = 2,
    dtype: type = np.float32,
) -> Arrays:  # fmt: skip
    """Make noisy images whose class shows in their top row; clients own consecutive positions, shuffled."""
    rng = np.random.default_rng(0)
    n = sum(sizes) + validation

    def draw(count: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        rest = (1 - share) / max(n_classes - 1, 1)
        y = rng.choice(n_classes, count, p=[rest] * (n_classes - 1) + [share]).astype(np.int64)
        y[:n_classes] = np.arange(n_classes)
        x = rng.normal(size=(count, 1, side, side)).astype(dtype)
        x[:, 0, 0] += y[:, None]
        return x, y

    x_train, y_train = draw(n, 0.4)
    x_test, y_test = draw(test, 0.5)
    order = rng.permutation(n)
    clients = [np.sort(part) for part in np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])]
    return Arrays(x_train, y_train, x_test, y_test, clients, np.sort(order[sum(sizes) :]), n_classes)


def rare(positives: Sequence[int], size: int = 20, dtype: type = np.float32) -> Arrays:
    """Make images of one client per entry, with that many positives among ``size`` samples."""
    arrays = images((size,) * len(positives), dtype=dtype)
    arrays.y_train[:] = 0
    for client, number in zip(arrays.clients, positives, strict=True):
        arrays.y_train[client[:number]] = 1
    return arrays


def points(
    sizes: Sequence[int] = (20, 26, 31), test: int = 40, features: int = 3, dtype: type = np.float64
) -> Arrays:
    """Make vectors labelled by the sign of their first entries' sum; clients own consecutive positions."""
    rng = np.random.default_rng(0)
    n = sum(sizes)
    x = rng.normal(size=(n + test, features)).astype(dtype)
    y = (x[:, :2].sum(1) + 0.3 * rng.normal(size=n + test) > 0).astype(np.int64)
    clients = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    return Arrays(x[:n], y[:n], x[n:], y[n:], clients, np.array([], dtype=np.int64), 2)


def spec(
    method: str = "fedavg", params: dict[str, Any] | None = None, seed: int = 0, network: str = "mlp",
    options: dict[str, Any] | None = None, clients: int = 3, **train: Any,
) -> RunSpec:  # fmt: skip
    """Describe a short run: ``params`` change the method's in :data:`PARAMS`, ``train`` the rounds of 4 steps of 6."""
    how: dict[str, Any] = {"rounds": 5, "period": 4, "batch_size": 6, "evaluations": 2, **train}
    how = {name: value for name, value in how.items() if value is not None}
    if options is None and network == "mlp":
        options = {"hidden": [5]}
    return RunSpec(
        data=DataSpec(dataset="synthetic", clients=clients),
        network=NetworkSpec(name=network, options=options or {}),
        method=method,
        params=PARAMS[method] | (params or {}),
        train=TrainSpec(**how),
        seed=seed,
    )


def simulate(
    run: RunSpec, arrays: Arrays, chunk: int | None = 1, **options: Any
) -> tuple[Simulation, Outcome]:
    simulation = Simulation(run, arrays, CPU, Execution(chunk=chunk, **options))
    return simulation, simulation.run()


def saved(
    path: Path, on_round: Callable[[Progress], None] = lambda progress: None, chunk: int | None = 1
) -> Execution:
    """Execute a run with a checkpoint after every round."""
    return Execution(chunk=chunk, checkpoint=path, checkpoint_seconds=0, on_round=on_round)


class KilledError(Exception):
    """Stands for a killed process."""


def interrupted(
    run: RunSpec, arrays: Arrays, path: Path, at: set[int], chunk: int | None = 1
) -> tuple[Simulation, Outcome]:
    """Train with a checkpoint each round, killed in the given rounds before their checkpoint is written."""
    left = set(at)

    def die(progress: Progress) -> None:
        if progress.round in left:
            left.remove(progress.round)
            raise KilledError

    while True:
        simulation = Simulation(run, arrays, CPU, saved(path, die, chunk))
        with contextlib.suppress(KilledError):
            return simulation, simulation.run()


def tiny_norm(shape: tuple[int, ...] = (1, 6, 6), outputs: int = 1, **_: Any) -> nn.Module:
    """Build a convolution, batch-norm, leaky ReLU and linear layer: 55 parameters for 6 x 6 images."""
    convolution, norm = nn.Conv2d(shape[0], 2, 3, bias=False), nn.BatchNorm2d(2)
    return nn.Sequential(
        convolution, norm, nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(2 * (shape[1] - 2) ** 2, outputs)
    )


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Whether two states hold the same bits."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
