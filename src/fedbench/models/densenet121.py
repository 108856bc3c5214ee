"""DenseNet121 (Huang et al., CVPR 2017) from torchvision; names of weights are torchvision's."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from fedbench.errors import UserError

LEAST = 29
"""Pixels a side that the five halvings need."""


def build(shape: tuple[int, ...], outputs: int, size: int | None = None) -> nn.Module:
    """Build the network for images [3, H, W], or grey ones [1, H, W], which are repeated.

    Images below 29 pixels a side, too small for five halvings, need ``size``: they are resized to it.
    """
    try:
        from torchvision.models import densenet121
    except ImportError:
        raise UserError("network 'densenet121' needs torchvision: pip install torchvision") from None
    if shape[0] not in (1, 3):
        raise UserError(f"network 'densenet121' takes images with 3 channels or 1, not {shape[0]}")
    if size is None and min(shape[1:]) < LEAST:
        raise UserError(
            f"network 'densenet121' takes images of {LEAST} pixels or more, not {shape[1]} x {shape[2]}: set its"
            " option size, e.g. 32"
        )
    module: nn.Module = densenet121(weights=None, num_classes=outputs)
    for part in module.modules():  # in-place ReLU would overwrite what a second backward still needs
        if isinstance(part, nn.ReLU):
            part.inplace = False
    if shape[0] == 1 or size is not None:
        module.register_forward_pre_hook(Enlarge(size))  # no layer: a file of torchvision's weights is to fit
    return module


class Enlarge:
    """Resizes images to a square of ``size`` and repeats a single channel."""

    def __init__(self, size: int | None) -> None:
        self.size = size

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> Tensor:
        """Map [B, 1 or 3, H, W] to [B, 3, size, size] on the way into the module."""
        inputs: Tensor = args[0]
        if self.size is not None:
            inputs = F.interpolate(inputs, (self.size, self.size), mode="bilinear", antialias=True)
        return inputs.expand(-1, 3, -1, -1)
