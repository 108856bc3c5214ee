"""Ratio loss: class weights from last-layer gradients on a small balanced auxiliary set (Wang et al., AAAI 2021)."""

from __future__ import annotations

import torch
from torch import Tensor


def mean_of_ratios(gradients: Tensor) -> Tensor:
    """Return ``R_p = | mean_j (C-1) G_p[p, j] / sum_{c != p} G_c[p, j] |``, as climb's program computes it.

    The mean is over coordinates j whose denominator is not zero (the gradients of a dead feature are all zero). R_p is
    unbounded: a denominator may come arbitrarily close to zero.

    Args:
        gradients: [C, C, D]; ``gradients[c]`` is the gradient of the cross-entropy on the auxiliary samples of class c
            with respect to the output layer's weight matrix. For one logit give the two-class form, with rows (-g, g).

    Returns:
        Ratios [C]; nan for a class whose denominators are all zero.
    """
    n_classes = gradients.shape[0]
    numerators = torch.stack([gradients[c, c] for c in range(n_classes)])
    # Not the sum of all minus class p's own: if the own is large, rounding would swallow a small denominator.
    itself = torch.eye(n_classes, dtype=torch.bool, device=gradients.device)[:, :, None]
    others = gradients.masked_fill(itself, 0).sum(0)
    usable = others != 0
    ratios = torch.where(usable, (n_classes - 1) * numerators / torch.where(usable, others, 1.0), 0.0)
    return (ratios.sum(1) / usable.sum(1)).abs()


def ratio_of_sums(gradients: Tensor, dominance: float) -> Tensor:
    """Return ``R_p = | sum_j U_p[j] | / | sum_j mean_{c != p} U_c[j] |``, as the program of Wang et al. computes it.

    U_c = -G_c is the update of the output layer's weights by samples of class c. The sums run over the weights j that
    class p owns: there its update is the largest, and the absolute update of every other class is at most
    ``dominance`` times as large.

    Args:
        gradients: as for :func:`mean_of_ratios`.
        dominance: a share in [0, 1]; 0.8 in the program.

    Returns:
        Ratios [C]; nan for a class that owns no weight or whose denominator is zero.
    """
    n_classes = gradients.shape[0]
    updates = -gradients.flatten(1)
    largest, owner = updates.max(0)
    rivals = torch.where(largest == 0, updates == 0, updates.abs() > dominance * largest.abs()).sum(0)
    mine = (owner == torch.arange(n_classes, device=owner.device)[:, None]) & (rivals < 2)
    sums = mine.to(updates.dtype) @ updates.T
    numerators = sums.diagonal()
    others = sums.masked_fill(torch.eye(n_classes, dtype=torch.bool, device=sums.device), 0).sum(1)
    ratios = (n_classes - 1) * numerators.abs() / others.abs()
    return torch.where(others == 0, float("nan"), ratios)


def class_weights(ratios: Tensor, alpha: float, beta: float, limit: float, undefined: float) -> Tensor:
    """Return the class weights ``alpha + beta min(R_c, limit)``, [C].

    Args:
        ratios: R [C], nan where there is none.
        alpha: constant part of a weight.
        beta: weight of the ratio; 0 gives plain cross-entropy times alpha.
        limit: largest ratio.
        undefined: the ratio that replaces nan.
    """
    return alpha + beta * ratios.nan_to_num(undefined).clamp(max=limit)
