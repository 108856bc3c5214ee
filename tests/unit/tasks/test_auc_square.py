"""The gradient norm of the AUC's square surrogate: against pairs one by one, at the known solution, and bad data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from world import CPU, images, points, simulate, spec

from fedbench.data.clients import Arrays
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.spec import RunSpec, TaskSpec
from fedbench.task import Model, Part


def run_of(method: str = "coda_plus", **train: object) -> RunSpec:
    params = {"score": "logit", "proximal": 0.0, "lr": 0.1, "lr_dual": 0.1} if method == "coda_plus" else {}
    result = spec(method, params, options={"hidden": []}, **train)
    return result.model_copy(update={"task": TaskSpec(name="auc_square")})


def pair_by_pair(arrays: Arrays, w: np.ndarray) -> float:
    """Return ``p (1-p) mean (1 - s+ + s-)^2`` over all pairs of a linear score."""
    scores, y = arrays.x_test @ w[:-1] + w[-1], arrays.y_test
    p = y.mean()
    pairs = [(1 - high + low) ** 2 for high in scores[y == 1] for low in scores[y == 0]]
    return float(p * (1 - p) * np.mean(pairs))


def measured(arrays: Arrays, w: np.ndarray) -> dict[str, float]:
    simulation = Simulation(run_of(), arrays, CPU)
    model = Model(simulation.problem.net, torch.tensor(w), None, simulation.data)
    return simulation.problem.task.measure(model, Part("test", torch.tensor(arrays.x_test), arrays.y_test))


@pytest.mark.usefixtures("double")
def test_the_norm_is_that_of_differences_of_the_mean_over_pairs() -> None:
    arrays, w = points(), np.array([0.4, -0.7, 0.2, 1.3])
    step = 1e-6
    slopes = [
        (pair_by_pair(arrays, w + step * unit) - pair_by_pair(arrays, w - step * unit)) / (2 * step)
        for unit in np.eye(4)
    ]
    metrics = measured(arrays, w)
    assert metrics["gradient_norm"] == pytest.approx(np.linalg.norm(slopes), rel=1e-6)
    shifted = measured(arrays, w + np.array([0, 0, 0, 5.0]))
    assert shifted == pytest.approx(metrics), "the AUC does not see the intercept"


@pytest.mark.usefixtures("double")
def test_it_vanishes_where_all_pairs_are_fitted_best() -> None:
    arrays = points()
    high, low = arrays.x_test[arrays.y_test == 1], arrays.x_test[arrays.y_test == 0]
    pairs = (high[:, None] - low[None]).reshape(-1, 3)
    best, *_ = np.linalg.lstsq(pairs, np.ones(len(pairs)), rcond=None)
    assert measured(arrays, np.append(best, 0.3))["gradient_norm"] < 1e-12


def test_a_run_has_it_at_every_evaluation_and_min_max_methods_bring_it_down() -> None:
    arrays = points((24, 24, 24), dtype=np.float32)
    arrays = dataclasses.replace(arrays, x_test=arrays.x_train, y_test=arrays.y_train)
    simulation, outcome = simulate(run_of(rounds=60, evaluations=4), arrays)
    norms = [row["test_gradient_norm"] for row in simulation.record.curve]
    assert len(norms) == 5 and norms[-1] < norms[0] / 5
    assert outcome.metrics["test_auc"] > 0.9


def test_several_classes_are_refused() -> None:
    with pytest.raises(UserError, match="task 'auc_square' is for two classes, and the data have 3"):
        Simulation(run_of("fedavg"), images(n_classes=3), CPU)
