"""Convolution-pool blocks followed by linear layers: the FashionMNIST, digits and FedDyn-style CIFAR networks.

FashionMNIST (localscgdam, our choice, its Appendix B is not public): conv20-5, pool, conv50-5, pool, fc500.
CLIMB's CIFAR10 network: conv64-5, pool, conv64-5, pool, fc384, fc192 with leaky ReLU.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from fedbench.errors import UserError
from fedbench.models.mlp import activation_named, widths_of


def build(
    shape: tuple[int, ...],
    outputs: int,
    channels: Sequence[int] = (20, 50),
    kernel: int = 5,
    padding: int = 0,
    hidden: Sequence[int] = (500,),
    activation: str = "relu",
) -> nn.Module:
    """Build the network: per entry of ``channels`` a convolution, 2x2 pool and activation; then ``hidden`` layers."""
    act = activation_named(activation)
    size = list(shape[1:])
    layers: list[nn.Module] = []
    fan_in = shape[0]
    for fan_out in widths_of("cnn", "channels", channels):
        # The activations are increasing, so pooling first gives the same values from a quarter of the work.
        layers += [nn.Conv2d(fan_in, fan_out, kernel, padding=padding), nn.MaxPool2d(2), act()]
        size = [(side + 2 * padding - kernel + 1) // 2 for side in size]
        if min(size) < 1:
            raise UserError(
                f"network 'cnn': images of {shape[1]} x {shape[2]} pixels are too small for {len(channels)} blocks"
                f" with kernel {kernel} and padding {padding}"
            )
        fan_in = fan_out
    layers.append(nn.Flatten())
    fan_in *= size[0] * size[1]
    for fan_out in widths_of("cnn", "hidden", hidden):
        layers += [nn.Linear(fan_in, fan_out), act()]
        fan_in = fan_out
    return nn.Sequential(*layers, nn.Linear(fan_in, outputs))
