"""The share of positives in min-max losses: with the clients' mean, their mean loss is the square loss of the AUC."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from world import images, simulate, spec

from fedbench.data.clients import Arrays
from fedbench.objectives.auc_minimax import auc_minimax
from fedbench.testing import simulation

SIZES = (20, 26, 31, 12)
POSITIVES = (10, 1, 9, 6)
SHARE = sum(n / size for n, size in zip(POSITIVES, SIZES, strict=True)) / len(SIZES)

pytestmark = pytest.mark.usefixtures("double")


def unequal(sizes: tuple[int, ...] = SIZES) -> Arrays:
    arrays = images(sizes, dtype=np.float64)
    for positions, n in zip(arrays.clients, POSITIVES, strict=True):
        arrays.y_train[positions] = np.arange(len(positions)) < n
    return arrays


def mean_loss(prior: float, scores: list[Tensor], labels: list[Tensor], *abd: Tensor) -> Tensor:
    """The mean over clients of F on all of a client's samples, at one (a, b, alpha) for all."""
    part = [
        auc_minimax(s[None], y[None], *(one[None] for one in abd), prior)
        for s, y in zip(scores, labels, strict=True)
    ]
    return torch.cat(part).mean()


@pytest.mark.parametrize("method", ["coda_plus", "codasca", "coda", "local_sgdam", "local_scgdam"])
@pytest.mark.parametrize("prior", ["client", "pooled"])
def test_of_unequal_clients_it_is_the_square_loss_of_the_auc_with_their_mean_share(
    prior: str, method: str
) -> None:
    """Saddle at the class means with alpha = b - a, its value that of all pairs, and blind to a shift of all scores."""
    arrays = unequal()
    problem = simulate(spec(method, {}, rounds=1, clients=4, prior=prior), arrays)[0].problem
    labels = [torch.tensor(arrays.y_train[positions]) for positions in arrays.clients]
    rng = torch.Generator().manual_seed(0)
    scores = [torch.randn(len(y), generator=rng) for y in labels]
    weight = torch.cat([torch.full((len(y),), 1 / len(y) / len(labels)) for y in labels])
    s, y = torch.cat(scores), torch.cat(labels)

    def mean(values: Tensor, chosen: Tensor) -> Tensor:
        return (weight * values)[chosen].sum() / weight[chosen].sum()

    a, b = mean(s, y == 1), mean(s, y == 0)
    at = [part.clone().requires_grad_() for part in (a, b, b - a)]
    value = mean_loss(problem.prior, scores, labels, *at)
    slopes = torch.stack(torch.autograd.grad(value, at))
    moved = mean_loss(problem.prior, [one + 3 for one in scores], labels, a + 3, b + 3, b - a)
    pairs = weight[y == 1][:, None] * weight[y == 0] * (1 - s[y == 1][:, None] + s[y == 0]) ** 2
    square = pairs.sum()  # p (1 - p) times its mean
    p = problem.prior
    holds = [
        bool(slopes.abs().max() < 1e-12),
        bool((value - moved).abs() < 1e-12),
        bool((value + p * (1 - p) - square).abs() < 1e-12),
    ]
    assert holds == [prior == "client"] * 3
    pooled = sum(POSITIVES) / sum(SIZES)
    assert problem.prior == pytest.approx(SHARE if prior == "client" else pooled, abs=1e-15)
    assert abs(SHARE - pooled) > 0.01


@pytest.mark.parametrize("prior", ["client", "pooled"])
def test_with_positives_beside_each_batch_it_is_their_share_in_the_batches(prior: str) -> None:
    """Counted over as many rounds as bring every client's stream of batches to an end: 5 batches of 4 in 20, ..."""
    sizes = (20, 24, 32, 12)
    task = {"name": "more_positives", "options": {"positives": 3}}
    params = {"lr": 0.1, "lr_dual": 0.1, "proximal": 0.0, "score": "logit", "dual_step": "batch"}
    run = simulation("coda_plus", params, unequal(sizes), task=task, batch_size=4, period=120, prior=prior)
    shares = []
    for client in range(4):
        rounds = run.problem.task.rounds(run.data, [client], 1, "batches")
        batches = [rounds.batch(step) for step in range(rounds.steps)]
        shares.append(np.mean([float((batch.weight * batch.labels).sum()) for batch in batches]))
    expected = np.average(shares, weights=None if prior == "client" else sizes)
    assert run.problem.prior == pytest.approx(expected, abs=1e-12)
