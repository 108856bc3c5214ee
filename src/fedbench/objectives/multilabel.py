"""Binary cross-entropy of several findings; a sample may have any number of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedbench.objectives.mean import batch_mean


def bits(codes: Tensor, count: int) -> Tensor:
    """Return the ``count`` lowest bits of whole numbers [...], the lowest first: [..., count] of 0 and 1."""
    return codes[..., None] >> torch.arange(count, device=codes.device) & 1


def multilabel(scores: Tensor, codes: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return each client's cross-entropy, the mean over findings and samples, [K].

    Args:
        scores: logits [K, B, C], one for each finding.
        codes: each sample's findings as the bits of a whole number, [K, B].
        weight: share of each sample in its client's mean [K, B]; ``None`` for equal shares.
    """
    targets = bits(codes, scores.shape[-1]).to(scores.dtype)
    losses = F.binary_cross_entropy_with_logits(scores, targets, reduction="none").mean(-1)
    return batch_mean(losses, weight)
