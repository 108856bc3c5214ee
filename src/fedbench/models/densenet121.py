"""DenseNet121 (Huang et al., CVPR 2017) from torchvision, without pretrained weights."""

from __future__ import annotations

from torch import nn

from fedbench.errors import UserError


def build(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Build the network for images [3, H, W]."""
    try:
        from torchvision.models import densenet121
    except ImportError:
        raise UserError("network 'densenet121' needs torchvision: pip install torchvision") from None
    if shape[0] != 3:
        raise UserError(f"network 'densenet121' takes images with 3 channels, not {shape[0]}")
    module: nn.Module = densenet121(weights=None, num_classes=outputs)
    for part in module.modules():  # in-place ReLU would overwrite what a second backward still needs
        if isinstance(part, nn.ReLU):
            part.inplace = False
    return module
