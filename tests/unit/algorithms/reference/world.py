"""What every method is given, and a module as one vector."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Data = tuple[Tensor, Tensor]


@dataclass
class World:
    """What every method is given.

    Attributes:
        module: the network with its initial weights and statistics.
        clients: each client's inputs and labels.
        batches: (client, round, purpose) -> the round's batches as positions in the client's samples.
        first: (client, purpose) -> the batch that initialises momenta.
        draw: (client, n, round) -> the larger batch of a dual restart.
        auxiliary: one batch per class.
        prior: share of positives.
        rounds: how many.
        stages: rounds that begin a stage.
        factor: what a stage multiplies step sizes with.
        chosen: round -> participants; ``None`` for all clients.
        clip_norm: bound on a gradient's norm.
        clip_value: bound on each of its entries.
        weight_decay: added to gradients, times the parameters.
        cycle: rounds of a cycle.
        epoch_batches: how many batches an epoch of each client has, where it has local epochs.
        opening: (client, n) -> the samples that a client scores before round 0.
        passive: (sign, round, client, n, wanted) -> places in a pool of n that a client receives.
    """

    module: nn.Module
    clients: list[Data]
    batches: Callable[[int, int, str], list[Any]]
    first: Callable[[int, str], Data]
    draw: Callable[[int, int, int], Data]
    auxiliary: list[Data]
    prior: float
    rounds: int
    stages: tuple[int, ...] = ()
    factor: float = 0.1
    chosen: Callable[[int], list[int]] | None = None
    clip_norm: float | None = None
    clip_value: float = float("inf")
    weight_decay: float = 0.0
    cycle: int = 1
    epoch_batches: list[int] = field(default_factory=list)
    opening: Callable[[int, int], Data] | None = None
    passive: Callable[[str, int, int, int, int | None], list[int]] | None = None

    def participants(self, index: int) -> list[int]:
        return list(range(len(self.clients))) if self.chosen is None else self.chosen(index)

    def round_batches(self, client: int, index: int, purpose: str = "batches") -> list[Data]:
        x, y = self.clients[client]
        return [(x[b], y[b]) for b in self.batches(client, index, purpose)]

    def decay(self, index: int) -> float:
        result = 1.0
        for stage in self.stages:
            if index >= stage:
                result *= self.factor
        return result


def flat(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def flat_buffers(module: nn.Module) -> Tensor:
    parts = [b.detach().reshape(-1) for b in module.buffers() if b.is_floating_point()]
    return torch.cat(parts) if parts else torch.zeros(0)


def set_flat(module: nn.Module, vector: Tensor) -> None:
    torch.nn.utils.vector_to_parameters(vector, module.parameters())


def average(modules: list[nn.Module]) -> nn.Module:
    """Average parameters and floating-point buffers."""
    result = copy.deepcopy(modules[0])
    for target, *sources in zip(result.parameters(), *[m.parameters() for m in modules], strict=True):
        target.data = sum(s.data for s in sources) / len(sources)
    for target, *sources in zip(result.buffers(), *[m.buffers() for m in modules], strict=True):
        if target.is_floating_point():
            target.copy_(sum(sources) / len(sources))
    return result


def named(module: nn.Module, w: Tensor) -> dict[str, Tensor]:
    """Split a flat vector into the module's named parameters."""
    result, at = {}, 0
    for name, p in module.named_parameters():
        result[name] = w[at : at + p.numel()].view_as(p)
        at += p.numel()
    return result
