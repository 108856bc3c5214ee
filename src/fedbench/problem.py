"""The problem as a method sees it: the network, the prior, gradients; no files and no rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbench import random
from fedbench.data.round_batches import Batch
from fedbench.net import Leaf, Net
from fedbench.objectives.cross_entropy import cross_entropy, of_network
from fedbench.task import Task

__all__ = ["Batch", "Charges", "Problem", "State", "Turn", "buffers_of"]

State = dict[str, Tensor]


@dataclass
class Charges:
    """Costs of a method beyond its averaged tensors and local steps, summed over clients; the ledger collects them."""

    up: float = 0
    down: float = 0
    forward: int = 0

    def add(self, up: float = 0, down: float = 0, forward: int = 0) -> None:
        """Count ``up`` floats to the server, ``down`` floats from it, and ``forward`` samples that are only scored."""
        self.up += up
        self.down += down
        self.forward += forward


@dataclass(frozen=True)
class Turn:
    """The position of a round in its cycle; if clients do not take turns, each round is one cycle.

    Attributes:
        round: the round, from 0.
        length: rounds of a cycle.
    """

    round: int
    length: int = 1

    @property
    def number(self) -> int:
        """Which cycle it is, from 0."""
        return self.round // self.length

    @property
    def begins(self) -> bool:
        """Whether this round begins a cycle."""
        return self.round % self.length == 0

    @property
    def ends(self) -> bool:
        """Whether this round ends a cycle."""
        return (self.round + 1) % self.length == 0


@dataclass
class Problem:
    """The federated problem one run solves.

    Attributes:
        task: what is learned.
        net: the network.
        prior: share of positives for min-max losses: of all drawn samples together, or the mean of the clients' shares
            (``train.prior``); nan unless there are two classes.
        n_classes: number of classes (2 for a binary task).
        n_clients: number of clients, whether they take part or not.
        weight_decay: this multiple of the network's parameters is added to their gradient.
        clip_norm: largest Euclidean norm of a client's gradient before weight decay, or None.
        clip_value: largest absolute value of a gradient's entry, after ``clip_norm`` and before weight decay, or None.
        draw: (client, n, label) -> a batch [1, n, ...] of up to n of that client's samples without replacement, for
            steps that need more than a mini-batch. ``label``, a text that may be left out, names the purpose: each
            round and each label has another draw. The samples count as ``samples_forward``, like those of
            ``client_losses``.
        auxiliary: n -> a batch of up to n training samples of each class that the server holds, in class order.
        client_losses: (w, buffers, time) -> mean cross-entropy of the parameters w [d] on every client's data, [N].
            Samples are unchanged if ``time`` is None, else augmented as in training, anew at each time.
        charges: costs that the method adds itself.
        batches: () -> number of mini-batches in an epoch of each client, [N].
        class_counts: () -> each client's training samples of each class, [N, C] of whole numbers.
        participants: round -> the clients that take part in it, ascending.
        weights: each client's share of an average over all clients, [N] float64; None where all clients have the same.
        cycle: the current round's position in its cycle.
        seed: the run's seed.
        period: local steps of a round; None where a round is one or several passes over the clients' data.
        overwrite: whether ``descend`` may overwrite its arguments, since nothing else needs them.
    """

    task: Task
    net: Net
    prior: float
    n_classes: int
    n_clients: int
    weight_decay: float = 0.0
    clip_norm: float | None = None
    clip_value: float | None = None
    draw: Callable[..., Batch] | None = None
    auxiliary: Callable[[int], list[Batch]] | None = None
    client_losses: Callable[..., Tensor] | None = None
    charges: Charges = field(default_factory=Charges)
    batches: Callable[[], Tensor] | None = None
    class_counts: Callable[[], Tensor] | None = None
    participants: Callable[[int], list[int]] | None = None
    weights: Tensor | None = None
    cycle: Turn = Turn(0)
    seed: int = 0
    period: int | None = None
    overwrite: bool = False

    def stream(self, purpose: str, *ids: int) -> np.random.Generator:
        """Return a generator for draws of a method: another stream for each purpose and for each round and client."""
        return random.stream(self.seed, f"method: {purpose}", *ids)

    def share(self, clients: Sequence[int]) -> float:
        """Return the summed weight of ``clients`` in an average over all clients, in [0, 1]."""
        if self.weights is None:
            return len(clients) / self.n_clients
        return float(self.weights[[*clients]].sum())

    def scores(self, w: Tensor | Leaf, batch: Batch, buffers: Tensor | None) -> Tensor:
        """Return the network's training-mode outputs [K, B, C]; ``buffers`` change in place unless they are None."""
        return self.net.scores(w, batch.inputs, buffers)

    def loss(self, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's loss on its batch as the task defines it, [K]."""
        return self.task.loss(self.net, w, batch, buffers)

    def cross_entropy(
        self, w: Tensor | Leaf, batch: Batch, buffers: Tensor | None, class_weights: Tensor | None = None
    ) -> Tensor:
        """Return each client's cross-entropy on its batch, [K]."""
        if class_weights is None:
            return of_network(self.net, w, batch.inputs, batch.labels, batch.weight, buffers)
        return cross_entropy(self.scores(w, batch, buffers), batch.labels, batch.weight, class_weights)

    def gradient(self, loss: Callable[[Leaf], Tensor], w: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient [K, d] of each client's loss at ``w`` (clipped, plus weight decay), and the losses [K].

        Clients are independent, so the gradient of the summed losses holds each client's own.
        """
        leaf = self.net.leaf(w)
        losses = loss(leaf)
        (gradient,) = leaf.gradient(losses)
        return self.regularised(gradient, w), losses.detach()

    def descend(
        self,
        loss: Callable[[Leaf], Tensor],
        x: Tensor,
        rate: float,
        m: Tensor | None = None,
        momentum: float = 0.0,
    ) -> tuple[Tensor, ...]:
        """Make a step of gradient descent, with heavy-ball momentum where ``m`` is given.

        That is ``m <- momentum m + gradient``, ``x <- x - rate m``. Where ``overwrite`` allows it, x and m change in
        place, one part of the network after the other, so that the processor's cache holds one vector less.

        Args:
            loss: each client's loss [K] at given parameters.
            x: parameters [K, d].
            rate: step size.
            m: momentum [K, d].
            momentum: the factor of ``m``, in [0, 1).

        Returns:
            The losses [K] before the step, the new x and, if ``m`` was given, the new m.
        """
        if self.overwrite and len(x) == 1 and not self.regularises:
            return self._descend_in_place(loss, x, rate, m, momentum)
        gradient, losses = self.gradient(loss, x)
        if m is None:
            return losses, torch.add(x, gradient, alpha=-rate, out=gradient)
        m = torch.add(gradient, m, alpha=momentum, out=gradient)
        return losses, torch.add(x, m, alpha=-rate), m

    def _descend_in_place(
        self, loss: Callable[[Leaf], Tensor], x: Tensor, rate: float, m: Tensor | None, momentum: float
    ) -> tuple[Tensor, ...]:
        leaf = self.net.leaf(x)
        losses = loss(leaf)
        gradients = leaf.gradients(losses)
        if m is None:
            with torch.no_grad():
                torch._foreach_add_(leaf.parts, gradients, alpha=-rate)
            return losses.detach(), x
        for part, gradient in zip(self.net.parts(m), gradients, strict=True):
            torch.add(gradient, part, alpha=momentum, out=part)
        return losses.detach(), x.add_(m, alpha=-rate), m

    @property
    def regularises(self) -> bool:
        """Whether gradients are clipped or get weight decay."""
        return self.clip_norm is not None or self.clip_value is not None or bool(self.weight_decay)

    def regularised(self, gradient: Tensor, w: Tensor) -> Tensor:
        """Clip a gradient [K, d] by its norm, then by its entries, and add weight decay at parameters ``w`` [K, d]."""
        if self.clip_norm is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (self.clip_norm / (norm + 1e-6)).clamp(max=1)
        if self.clip_value is not None:
            gradient = gradient.clamp(-self.clip_value, self.clip_value)
        if self.weight_decay:
            gradient = torch.add(gradient, w, alpha=self.weight_decay)
        return gradient


def buffers_of(state: Mapping[str, Tensor], name: str = "buffers") -> Tensor | None:
    """Return a state's running statistics, or None for a network without them."""
    return state.get(name)
