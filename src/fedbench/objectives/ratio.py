"""Ratio loss: class weights from last-layer gradients on a small balanced auxiliary set (Wang et al., AAAI 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

UNDEFINED = 10.0
"""Ratio of a class whose denominators are all zero, as in the original program."""


def class_weights(gradients: Tensor, alpha: float, beta: float, limit: float = 100.0) -> Tensor:
    """Turn last-layer gradients into loss weights alpha + beta R_c.

    ``R_p = | mean_j (C-1) G_p[p, j] / sum_{c != p} G_c[p, j] |``, the mean over coordinates whose denominator is not
    zero (dead features say nothing), cut at ``limit`` because a mean of ratios explodes where a denominator
    crosses zero.

    Args:
        gradients: [C, C, D]; ``gradients[c]`` is the gradient of the cross-entropy on the auxiliary samples of class c
            with respect to the output layer's weight matrix. For one logit give the two-class form, with rows (-g, g).
        alpha: constant part of the weight.
        beta: weight of the ratio; 0 gives plain cross-entropy times alpha.
        limit: largest ratio.

    Returns:
        Weights [C].
    """
    n_classes = gradients.shape[0]
    own = torch.stack([gradients[c, c] for c in range(n_classes)])
    # Not the sum of all minus the own: where the own is large, nothing of a small denominator would be left.
    itself = torch.eye(n_classes, dtype=torch.bool, device=gradients.device)[:, :, None]
    others = gradients.masked_fill(itself, 0).sum(0)
    usable = others != 0
    ratios = torch.where(usable, (n_classes - 1) * own / torch.where(usable, others, 1.0), 0.0)
    mean = ratios.sum(1) / usable.sum(1)
    bounded = torch.where(usable.any(1), mean.abs().clamp(max=limit), UNDEFINED)
    return alpha + beta * bounded
