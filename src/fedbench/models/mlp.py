"""Multi-layer perceptron (CLIMB's MNIST network is 784-128-128-10 with leaky ReLU)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from torch import nn

from fedbench.errors import UserError, unknown

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}


def activation_named(name: str) -> type[nn.Module]:
    """Look an activation up.

    Raises:
        UserError: there is none of that name.
    """
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def widths_of(network: str, key: str, widths: Sequence[int]) -> list[int]:
    """Return the widths of layers.

    Raises:
        UserError: they are not a list of whole numbers from 1 on.
    """
    listed = isinstance(widths, Sequence) and not isinstance(widths, str)
    if not listed or any(type(width) is not int or width < 1 for width in widths):
        raise UserError(f"network {network!r}: {key} is a list of whole numbers from 1 on, not {widths!r}")
    return [*widths]


def build(
    shape: tuple[int, ...], outputs: int, hidden: Sequence[int] = (128, 128), activation: str = "relu"
) -> nn.Module:
    """Build the network for inputs of ``shape``, flattened; ``hidden`` holds the widths of the hidden layers."""
    act = activation_named(activation)
    widths = [math.prod(shape), *widths_of("mlp", "hidden", hidden)]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in itertools.pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))
