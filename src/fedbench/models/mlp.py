"""Multi-layer perceptron (CLIMB's MNIST network is 784-128-128-10 with leaky ReLU)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from torch import nn

from fedbench.errors import unknown

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}


def activation_named(name: str) -> type[nn.Module]:
    """Look an activation up.

    Raises:
        UserError: there is none of that name.
    """
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def build(
    shape: tuple[int, ...], outputs: int, hidden: Sequence[int] = (128, 128), activation: str = "relu"
) -> nn.Module:
    """Build the network for inputs of ``shape``, flattened; ``hidden`` holds the widths of the hidden layers."""
    act = activation_named(activation)
    widths = [math.prod(shape), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in itertools.pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))
