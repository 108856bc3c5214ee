"""Weights by PyTorch's names: a run may start from such weights and leave its own to other runs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedbench.errors import UserError
from fedbench.net import Net

Weights = Mapping[str, Tensor]


def named(net: Net, x: Tensor, buffers: Tensor | None) -> dict[str, Tensor]:
    """Return parameters ``x`` [>= d] and running statistics [n_buffers] by name, on the CPU."""
    flat = [(net.parameters, x)] if buffers is None else [(net.parameters, x), (net.statistics, buffers)]
    tensors = {}
    for places, vector in flat:
        sizes = [shape.numel() for _, shape in places]
        parts = torch.split(vector[: sum(sizes)].detach().cpu(), sizes)
        for (name, shape), part in zip(places, parts, strict=True):
            tensors[name] = part.reshape(shape).clone()
    return tensors


def start_from(net: Net, weights: Weights, drop_head: bool) -> None:
    """Let ``net`` begin with ``weights``, its output layer excepted if ``drop_head``.

    Raises:
        UserError: they are not this network's.
    """
    head = {f"{_head(net)}.weight", f"{_head(net)}.bias"} if drop_head else set[str]()
    places = [*net.parameters, *net.statistics]
    names = {name for name, _ in places}
    weights = _without_further_dots(weights, names)
    unused = {name for name in weights if name not in names and not name.endswith("num_batches_tracked")}
    missing = names - weights.keys() - head
    if missing or unused - head:
        facts = [f"they lack {_few(missing)}"] * bool(missing) + [f"{_few(unused - head)} is unknown"] * bool(
            unused - head
        )
        raise UserError(f"the weights to start from are not this network's: {' and '.join(facts)}")
    now = named(net, net.initial(), net.initial_buffers())
    for name, shape in places:
        if name in head:
            continue
        if weights[name].shape != shape:
            cure = "" if drop_head else " (drop_head: true leaves out the output layer)"
            raise UserError(
                f"the weights to start from are not this network's: {name} is {list(weights[name].shape)} there and "
                f"{list(shape)} here{cure}"
            )
        now[name] = weights[name].to(now[name])
    net.begin_with(*(_flat(now, part) for part in (net.parameters, net.statistics)))


def _without_further_dots(weights: Weights, names: set[str]) -> Weights:
    """Take ``norm.1.weight`` for ``norm1.weight``: torchvision's files of DenseNet are older than its names."""
    known = {name.replace(".", ""): name for name in names}
    return {
        name if name in names else known.get(name.replace(".", ""), name): weights[name] for name in weights
    }


def _head(net: Net) -> str:
    """Return the name of the output layer: the last with a weight matrix."""
    layers = [name.removesuffix(".weight") for name, shape in net.parameters if len(shape) == 2]
    if not layers:
        raise UserError("drop_head: this network has no linear output layer")
    return layers[-1]


def _flat(named_weights: Weights, places: list[tuple[str, torch.Size]]) -> Tensor:
    parts = [named_weights[name].reshape(-1) for name, _ in places]
    return torch.cat(parts) if parts else torch.zeros(0)


def _few(names: set[str]) -> str:
    shown = sorted(names)[:3]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
