"""Rows of tensors, read and written. Long ones are copied whole on a CPU: by index, numbers are copied one by one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LONG = 1000
"""Numbers in a row from which copying it on its own is faster, some six times for a network's parameters."""


def take(tensor: Tensor, rows: Sequence[int]) -> Tensor:
    """Return a copy of some rows [K, ...] of a tensor [N, ...]."""
    if not _copies_rows(tensor):
        return tensor[list(rows)]
    return torch.stack([tensor[row] for row in rows])


def put(tensor: Tensor, rows: Sequence[int], values: Tensor) -> None:
    """Write ``values`` [K, ...] into some rows of a tensor [N, ...]."""
    if not _copies_rows(tensor):
        tensor[list(rows)] = values
        return
    for row, value in zip(rows, values, strict=True):
        tensor[row] = value


def _copies_rows(tensor: Tensor) -> bool:
    """Say whether rows are copied one after another."""
    return tensor.device.type == "cpu" and tensor[0].numel() >= LONG
