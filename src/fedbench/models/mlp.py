"""Multi-layer perceptron (CLIMB's MNIST network is 784-128-128-10 with leaky ReLU)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}


def build(
    shape: tuple[int, ...], outputs: int, hidden: Sequence[int] = (128, 128), activation: str = "relu"
) -> nn.Module:
    """Build the network for inputs of ``shape``, flattened; ``hidden`` holds the widths of the hidden layers."""
    widths = [math.prod(shape), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in itertools.pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))
