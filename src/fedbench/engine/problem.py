"""What a method sees of the world: the network, the prior, gradients; nothing of files or rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from fedbench.net import Leaf, Net
from fedbench.objectives.cross_entropy import cross_entropy

State = dict[str, Tensor]


class Batch(NamedTuple):
    """A mini-batch of K clients: inputs [K, B, ...], labels [K, B], each sample's share of the mean [K, B] or None."""

    inputs: Tensor
    labels: Tensor
    weight: Tensor | None = None


@dataclass
class Charges:
    """Floats that a method sends besides its averaged tensors, summed over clients; the ledger collects them."""

    up: float = 0
    down: float = 0

    def add(self, up: float = 0, down: float = 0) -> None:
        """Count ``up`` floats to the server and ``down`` floats from it."""
        self.up += up
        self.down += down


@dataclass
class Problem:
    """The federated problem one run solves.

    Attributes:
        net: the network.
        prior: global share of positives in the training data; nan when the task is not binary.
        n_classes: number of classes (2 for a binary task).
        n_clients: number of clients, whether they take part or not.
        weight_decay: added to gradients of the network's parameters, times the parameters.
        clip_norm: largest Euclidean norm of a client's gradient before weight decay, or None.
        draw: (client, n) -> a batch of up to n of that client's samples without replacement, for steps that need more
            than a mini-batch; others in each round. Shape [1, n, ...].
        auxiliary: n -> for each class a batch of up to n training samples held by the server, in class order.
        client_losses: (w, buffers) -> mean cross-entropy of the parameters w [d] on every client's data, [N].
    """

    net: Net
    prior: float
    n_classes: int
    n_clients: int
    weight_decay: float = 0.0
    clip_norm: float | None = None
    draw: Callable[[int, int], Batch] | None = None
    auxiliary: Callable[[int], list[Batch]] | None = None
    client_losses: Callable[[Tensor, Tensor | None], Tensor] | None = None
    charges: Charges = field(default_factory=Charges)

    def scores(self, w: Tensor | Leaf, batch: Batch, buffers: Tensor | None) -> Tensor:
        """Return training-mode outputs [K, B, C]; ``buffers`` are updated in place, ``None`` leaves no trace."""
        return self.net.scores(w, batch.inputs, buffers)

    def cross_entropy(
        self, w: Tensor | Leaf, batch: Batch, buffers: Tensor | None, class_weights: Tensor | None = None
    ) -> Tensor:
        """Return each client's cross-entropy on its batch, [K]."""
        return cross_entropy(self.scores(w, batch, buffers), batch.labels, batch.weight, class_weights)

    def gradient(self, loss: Callable[[Leaf], Tensor], w: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient [K, d] of each client's loss at ``w`` (clipped, plus weight decay), and the losses [K].

        Clients are independent, so the gradient of the summed losses holds each client's own.
        """
        leaf = self.net.leaf(w)
        losses = loss(leaf)
        (gradient,) = leaf.gradient(losses)
        return self.regularised(gradient, w), losses.detach()

    def regularised(self, gradient: Tensor, w: Tensor) -> Tensor:
        """Clip a gradient [K, d] to the norm bound and add weight decay."""
        if self.clip_norm is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (self.clip_norm / (norm + 1e-6)).clamp(max=1)
        if self.weight_decay:
            gradient = torch.add(gradient, w, alpha=self.weight_decay)
        return gradient


def buffers_of(state: Mapping[str, Tensor], name: str = "buffers") -> Tensor | None:
    """Return a state's running statistics, or None for a network without them."""
    return state.get(name)
