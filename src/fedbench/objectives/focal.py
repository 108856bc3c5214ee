"""Focal loss (Lin et al., ICCV 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from fedbench.objectives.cross_entropy import per_sample
from fedbench.objectives.mean import batch_mean


def focal(scores: Tensor, labels: Tensor, gamma: float, weight: Tensor | None = None) -> Tensor:
    """Return each client's mean of ``-(1 - p)^gamma log p``, with p the probability of the true class, [K].

    Args:
        scores: logits [K, B, C].
        labels: classes [K, B].
        gamma: the larger, the less well-classified samples weigh, at least 0; 0 is cross-entropy.
        weight: share of each sample in the mean [K, B]; ``None`` for equal shares.
    """
    losses = per_sample(scores, labels)
    if gamma:
        others = -torch.expm1(-losses)  # 1 - p without cancellation, no log of a softmax
        # for gamma below 1 the power has no derivative at 0, the value of a well-classified sample in single precision
        losses = others.clamp_min(torch.finfo(others.dtype).tiny) ** gamma * losses
    return batch_mean(losses, weight)
