"""Builds the network that a run names, and refuses a module that cannot be trained as one."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fedbench import models, registry
from fedbench.errors import UserError, lacks_memory, unknown
from fedbench.net.network import Net

Builder = Callable[..., nn.Module]


def build_network(
    name: str, shape: Sequence[int], outputs: int, seed: int, options: Mapping[str, Any] | None = None,
    weights: str = "pytorch",
) -> Net:  # fmt: skip
    """Build a network with initial weights drawn from ``seed`` alone.

    Args:
        name: a file in ``fedbench.models``.
        shape: shape of one input, e.g. (1, 28, 28).
        outputs: number of scores per input; 1 for a binary task.
        seed: of the initial weights.
        options: the network's own options.
        weights: how the initial weights of linear and convolution layers are drawn (``specs.NetworkSpec``).

    Raises:
        UserError: unknown network or option; it cannot be built, or its outputs are not [B, ``outputs``].
    """
    build = builder(name, options or {})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = built(build, name, shape, outputs, options or {})
        with _naming(name, shape, build), torch.no_grad():
            scores = module.eval()(torch.zeros(2, *shape))  # where lazy layers draw their weights
        if weights == "xavier":
            _draw_xavier(module)
    returned = list(scores.shape) if isinstance(scores, torch.Tensor) else f"a {type(scores).__name__}"
    if returned != [2, outputs]:
        raise UserError(
            f"network {name!r} returns {returned} for 2 samples: it has to return [2, {outputs}], as many "
            "scores for each as the argument `outputs` of build says"
        )
    return Net(module.train())


def builder(name: str, options: Mapping[str, Any]) -> Builder:
    """Return ``build`` of a network's file; UserError where there is none or it takes no such option."""
    build: Builder = registry.find(sys.modules[models.__name__], "network", name, "build")
    takes = inspect.signature(build).parameters
    if all(part.kind is not part.VAR_KEYWORD for part in takes.values()):
        for option in options:
            if option not in (known := [*takes][2:]):
                raise unknown(f"option of network {name!r}:", option, known)
    return build


def built(
    build: Builder, name: str, shape: Sequence[int], outputs: int, options: Mapping[str, Any]
) -> nn.Module:
    """Return the module that ``build`` makes; UserError where it makes none, or one with state of its own."""
    with _naming(name, shape, build):
        module = build(tuple(shape), outputs, **options)
        if not isinstance(module, nn.Module):
            raise TypeError(f"build has to return a torch.nn.Module, not {module!r}")
    known = set[int]()
    for place, part in module.named_modules():
        for weights, tensor in part.named_parameters(place, recurse=False):
            if id(tensor) in known or not tensor.requires_grad:
                raise UserError(
                    f"network {name!r}: {weights} is frozen or also of another layer: each layer trains its own weights"
                )
            known.add(id(tensor))
        for buffer, _ in part.named_buffers(recurse=False):
            if not isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise UserError(
                    f"network {name!r}: {type(part).__name__} registers the buffer {buffer!r}: only batch-norm may; "
                    "compute a constant in forward"
                )
    return module


@contextlib.contextmanager
def _naming(name: str, shape: Sequence[int], build: Builder) -> Iterator[None]:
    """Turn whatever a network's file raises into a UserError, with the line of the file if there is one."""
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or lacks_memory(error):
            raise
        file = getattr(getattr(build, "__code__", None), "co_filename", "")
        raise UserError(
            f"network {name!r} for samples of shape {list(shape)}: {registry.place(error, file)}"
        ) from error


def _draw_xavier(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 1 / layer.bias.numel())
