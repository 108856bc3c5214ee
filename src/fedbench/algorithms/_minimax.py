"""What the AUC methods share: gradients of the min-max loss at x = (w, a, b)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fedbench.contract.problem import Batch, Problem
from fedbench.objectives.auc_minimax import auc_minimax

SCORES = ("sigmoid", "logit")
DUAL_STEPS = ("batch", "running_means")


class MinimaxGradient(NamedTuple):
    """Gradients of F: in x [K, d+2], in alpha [K], and the losses [K]."""

    x: Tensor
    alpha: Tensor
    loss: Tensor


def as_scores(outputs: Tensor, score: str) -> Tensor:
    """Turn outputs [K, B, 1] into scores [K, B]: in (0, 1) with ``sigmoid``, the logit itself with ``logit``."""
    outputs = outputs.squeeze(-1)
    return outputs.sigmoid() if score == "sigmoid" else outputs


def start_at(w: Tensor) -> Tensor:
    """Return x = (w, a, b) with a = b = 0, as in the official programs: [d] -> [d+2]."""
    return torch.cat([w, w.new_zeros(2)])


def minimax_gradient(
    problem: Problem,
    x: Tensor,
    alpha: Tensor,
    batch: Batch,
    buffers: Tensor | None,
    score: str,
    dual_step: str,
) -> MinimaxGradient:
    """Differentiate F at (x, alpha) on one batch.

    ``dual_step`` chooses the direction of alpha: ``batch`` is the batch gradient of F (the papers); ``running_means``
    is 2 (b - a - alpha), the population gradient divided by p(1-p) with a and b in place of the mean scores, as the
    official CODASCA program does: much better conditioned when positives are rare.
    """
    d = problem.net.d
    leaf = problem.net.leaf(x[:, :d])
    a, b, dual = (part.detach().requires_grad_() for part in (x[:, d], x[:, d + 1], alpha))
    scores = as_scores(problem.scores(leaf, batch, buffers), score)
    losses = auc_minimax(scores, batch.labels, a, b, dual, problem.prior, batch.weight)
    in_w, in_a, in_b, in_alpha = leaf.gradient(losses, a, b, dual)
    if dual_step == "running_means":
        in_alpha = 2 * (b - a - dual).detach()
    in_x = torch.cat([problem.regularised(in_w, x[:, :d]), in_a[:, None], in_b[:, None]], 1)
    return MinimaxGradient(in_x, in_alpha, losses.detach())
