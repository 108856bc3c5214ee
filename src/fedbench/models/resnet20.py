"""CIFAR-style ResNet20 (He et al., CVPR 2016, section 4.2): 16-32-64 channels, parameter-free (option A) shortcuts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3x3 convolutions with batch-norm; the shortcut subsamples and pads channels with zeros."""

    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, fan_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(fan_out)
        self.conv2 = nn.Conv2d(fan_out, fan_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(fan_out)
        self.stride, self.pad = stride, (fan_out - fan_in) // 2

    def forward(self, inputs: Tensor) -> Tensor:
        """Map [B, fan_in, H, W] to [B, fan_out, H/stride, W/stride]."""
        out = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(inputs)))))
        shortcut = inputs
        if self.stride > 1 or self.pad:
            shortcut = F.pad(inputs[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return torch.relu(out + shortcut)


def build(shape: tuple[int, ...], outputs: int, blocks: int = 3) -> nn.Module:
    """Build the network for images [C, H, W]; ``blocks`` per stage, 3 for ResNet20 (6 * blocks + 2 layers)."""
    layers: list[nn.Module] = [
        nn.Conv2d(shape[0], 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
    ]
    fan_in = 16
    for stage, fan_out in enumerate((16, 32, 64)):
        for index in range(blocks):
            layers.append(Block(fan_in, fan_out, 2 if stage and not index else 1))
            fan_in = fan_out
    return _initialised(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, outputs)))


def _initialised(module: nn.Module) -> nn.Module:
    """Draw convolution and linear weights as He et al. (ICCV 2015) do."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight)
    return module
