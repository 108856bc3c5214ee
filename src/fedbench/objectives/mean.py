"""The mean over a batch that may be padded."""

from __future__ import annotations

from torch import Tensor


def batch_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Average ``values`` [K, B] over the batch: [K]. ``weight`` [K, B] holds each sample's share, 0 for padding."""
    return values.mean(1) if weight is None else (values * weight).sum(1)
