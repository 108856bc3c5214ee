"""ResNet18 (He et al., CVPR 2016) from torchvision, with a stem for small images instead of ImageNet's."""

from __future__ import annotations

from torch import nn

from fedbench.errors import UserError


def build(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Build the network for images [C, H, W]: its first layer is a 3x3 convolution of stride 1, without pooling."""
    try:
        from torchvision.models import resnet18
    except ImportError:
        raise UserError("network 'resnet18' needs torchvision: pip install torchvision") from None
    module: nn.Module = resnet18(weights=None, num_classes=outputs)
    module.conv1 = nn.Conv2d(shape[0], 64, 3, padding=1, bias=False)
    # as torchvision draws the others
    nn.init.kaiming_normal_(module.conv1.weight, mode="fan_out", nonlinearity="relu")
    module.maxpool = nn.Identity()
    for part in module.modules():  # in-place ReLU would overwrite what a second backward still needs
        if isinstance(part, nn.ReLU):
            part.inplace = False
    return module
