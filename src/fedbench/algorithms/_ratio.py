"""Class weights of the ratio loss from a problem's auxiliary set."""

from __future__ import annotations

import torch
from torch import Tensor

from fedbench.engine.problem import Problem
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.objectives.ratio import class_weights


def ratio_weights(
    problem: Problem, w: Tensor, buffers: Tensor | None, n_aux: int, alpha: float, beta: float
) -> Tensor:
    """Compute the class weights [C] at parameters ``w`` [d] (evaluation mode) from ``n_aux`` samples of each class."""
    if problem.auxiliary is None:
        raise ValueError("the ratio loss needs a problem with an auxiliary set")
    place, shape = problem.net.last_layer()
    statistics = None if buffers is None else buffers[None]
    gradients = []
    for batch in problem.auxiliary(n_aux):
        leaf = w[None].detach().requires_grad_()
        scores = problem.net.scores(leaf, batch.inputs, statistics, train=False)
        (gradient,) = torch.autograd.grad(cross_entropy(scores, batch.labels).sum(), leaf)
        part = gradient[0, place].view(shape)
        gradients.append(torch.cat([-part, part]) if shape[0] == 1 else part)
    return class_weights(torch.stack(gradients), alpha, beta)
