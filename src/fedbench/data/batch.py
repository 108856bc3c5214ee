"""A mini-batch."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """A mini-batch of K clients: inputs [K, B, ...], labels [K, B], each sample's share of the mean [K, B] or None."""

    inputs: Tensor
    labels: Tensor
    weight: Tensor | None = None
