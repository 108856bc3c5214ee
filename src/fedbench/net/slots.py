"""The slots of a module's parameters and statistics after their values were taken out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

Slot = tuple[dict[str, Any], str, torch.Size]
"""Where a module looks for a parameter: a dict, the name in it, and the shape."""


def take_out(module: nn.Module, kind: str) -> tuple[Tensor, list[Slot], list[tuple[str, torch.Size]]]:
    """Take parameters or buffers out of a module: their values as one vector, the slots they belong to, their names."""
    values, slots, places = list[Tensor](), list[Slot](), list[tuple[str, torch.Size]]()
    for path, part in module.named_modules():
        kept: dict[str, Tensor | None] = getattr(part, kind)
        for name, value in list(kept.items()):
            del kept[name]
            if value is None or not value.is_floating_point():
                part.__dict__[name] = None  # batch-norm's step counter: unused with a fixed momentum
                continue
            values.append(value.detach().reshape(-1))
            slots.append((part.__dict__, name, value.shape))
            places.append((f"{path}.{name}" if path else name, value.shape))
    return (torch.cat(values) if values else torch.zeros(0)), slots, places
