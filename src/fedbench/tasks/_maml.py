"""Model-agnostic meta-learning (Finn et al., ICML 2017) as conditional optimisation (fcsg)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.data.inputs import Inputs
from fedbench.data.round_batches import Batch
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.random import stream
from fedbench.task import Conditional, ConditionalTask, Model, Part
from fedbench.tasks._nested import Drawn, at_least, need_period

Episode = tuple[np.ndarray, np.ndarray]
"""Positions of the support set and of the query set among the samples from which they were drawn."""


@dataclass(frozen=True)
class Maml(ConditionalTask):
    """``min_x E_i L_i(x - inner_step grad L_i(x; support); query)`` over episodes i: the outer sample is an episode's
    query set, the inner sample its support set. The gradient is exact: it includes the derivative of the inner one.

    A model is measured on fixed episodes of a part, after ``test_steps`` inner steps.

    Attributes:
        shots: support samples of each class.
        queries: query samples of each class.
        episodes: episodes of a client's local step.
        inner_step: step size of the adaptation.
        test_steps: adaptation steps before a model is measured.
        test_episodes: number of episodes on which a model is measured.
    """

    shots: int
    queries: int
    episodes: int
    inner_step: float
    test_steps: int
    test_episodes: int

    name: ClassVar[str]
    spread: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for option in ("shots", "queries", "episodes", "test_steps", "test_episodes"):
            at_least(self.name, option, getattr(self, option), 1)
        at_least(self.name, "inner_step", self.inner_step, 0)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse local epochs, augmentation, networks with running statistics, and clients or parts on which no episode
        can be drawn.
        """
        need_period(self.name, data)
        if net.n_buffers:
            raise UserError(
                f"task {self.name!r} adapts a network to a few samples: one with running statistics is not the same "
                "function before and after. Take conv4 or mlp"
            )
        if data.spec.augment != "none" or data.spec.noise is not None:
            raise UserError(f"task {self.name!r} takes no train.augment and no train.noise")
        parts = {f"client {k}": arrays.y_train[own] for k, own in enumerate(arrays.clients)}
        parts["the test part"] = arrays.y_test
        if len(arrays.validation):
            parts["the validation part"] = arrays.y_train[arrays.validation]
        for who, labels in parts.items():
            if (enough := len(self.members(labels))) < self.episode_classes():
                raise UserError(
                    f"task {self.name!r}: {who} has {enough} classes of {self.shots} + {self.queries} samples (shots "
                    f"and queries); an episode takes {self.episode_classes()}"
                )

    def episode_classes(self) -> int:
        """Return how many classes an episode has."""
        return 1

    def members(self, labels: np.ndarray) -> list[np.ndarray]:
        """Return the positions of each class that has enough samples for an episode, given ``labels`` [n]."""
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return [group for group in groups if len(group) >= self.shots + self.queries]

    def episode(self, members: Sequence[np.ndarray], rng: np.random.Generator) -> Episode:
        """Draw classes, then disjoint support and query samples of each class."""
        size = self.shots + self.queries
        chosen = rng.choice(len(members), self.episode_classes(), replace=False)
        drawn = np.stack([rng.permutation(members[c])[:size] for c in chosen])
        return drawn[:, : self.shots].ravel(), drawn[:, self.shots :].ravel()

    def targets(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Return the targets of samples, [..., n], from inputs [..., n, *] and labels [..., n]."""
        raise NotImplementedError

    def losses(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return each episode's mean loss [E] from scores [E, n, C] and targets [E, n]."""
        raise NotImplementedError

    def results(self, scores: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return each metric of each episode, [E] each, from scores [E, n, C] and targets [E, n]."""
        raise NotImplementedError

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Drawn:
        """Draw the episodes of each client's steps; each client and round has its own random stream."""
        steps = len(data.steps(round_index))
        drawn = [
            self._draw(data, client, steps * self.episodes, stream(data.seed, purpose, client, round_index))
            for client in clients
        ]
        return self._gather(data, clients, drawn, steps)

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Drawn:
        """Draw the episodes of one step for each client."""
        streams = [stream(data.seed, purpose, client) for client in clients]
        drawn = [
            self._draw(data, client, self.episodes, rng) for client, rng in zip(clients, streams, strict=True)
        ]
        return self._gather(data, clients, drawn, 1)

    def _gather(
        self, data: ClientData, clients: Sequence[int], drawn: Sequence[Sequence[Episode]], steps: int
    ) -> Drawn:
        """Divide each client's episodes among ``steps`` steps."""
        batches = [
            self._stack(data, clients, [own[step * self.episodes :][: self.episodes] for own in drawn])
            for step in range(steps)
        ]
        samples = sum(len(s) + len(q) for own in drawn for s, q in own)
        return Drawn(batches, len(clients), samples, data.device)

    def _draw(self, data: ClientData, client: int, number: int, rng: np.random.Generator) -> list[Episode]:
        labels = data.labels[data.offsets[client] : data.offsets[client + 1]].cpu().numpy()
        members = self.members(labels)
        return [self.episode(members, rng) for _ in range(number)]

    def _stack(
        self, data: ClientData, clients: Sequence[int], drawn: Sequence[Sequence[Episode]]
    ) -> Conditional:
        """Gather each client's episodes: inputs [K, b, n, ...] of query and support sets, with targets as labels."""
        parts = []
        for which in (1, 0):
            index = np.stack(
                [
                    np.stack([episode[which] for episode in own]) + data.offsets[client]
                    for client, own in zip(clients, drawn, strict=True)
                ]
            )
            parts.append(self._gathered(data, data.inputs, data.labels, torch.from_numpy(index)))
        return Conditional(*parts)

    def _gathered(self, data: ClientData, inputs: Inputs, labels: Tensor, index: Tensor) -> Batch:
        index = index.to(inputs.device)
        chosen = inputs.index_select(0, index.flatten())
        prepared = data.prepare(chosen).view(*index.shape, *inputs.shape[1:])
        return Batch(prepared, self.targets(prepared, labels[index]))

    def inner_size(self, net: Net) -> int:
        """Return d: an inner value is a model."""
        return net.d

    def inner(self, net: Net, w: Tensor | Leaf, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return each episode's adapted model, [K, b, d]."""
        x = w.flat() if isinstance(w, Leaf) else w
        inputs, targets = batch.inner.inputs, batch.inner.labels
        k, b = targets.shape[:2]
        x = x[:, None].expand(k, b, x.shape[1]).flatten(0, 1)
        return self.adapted(net, x, Batch(inputs.flatten(0, 1), targets.flatten(0, 1)), True).view(
            k, b, net.d
        )

    def adapted(self, net: Net, x: Tensor, support: Batch, create_graph: bool) -> Tensor:
        """Make one inner step with each of E models ``x`` [E, d] on its support set [E, n, ...]."""
        if not self.inner_step:
            return x
        losses = self.losses(_scores(net, x, support.inputs, create_graph), support.labels)
        (gradient,) = torch.autograd.grad(losses.sum(), x, create_graph=create_graph)
        return x - self.inner_step * gradient

    def outer(self, net: Net, u: Tensor, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return the mean over episodes of the adapted models' losses on their query sets, [K]."""
        k, b = u.shape[:2]
        scores = _scores(net, u.flatten(0, 1), batch.outer.inputs.flatten(0, 1))
        return self.losses(scores, batch.outer.labels.flatten(0, 1)).view(k, b).mean(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Adapt the model to fixed episodes, one after the other, and return the metrics' means over them."""
        rng = stream(model.data.seed, f"{part.name} episodes")
        labels, members = torch.from_numpy(part.labels).to(part.inputs.device), self.members(part.labels)
        rows: dict[str, list[float]] = {}
        for _ in range(self.test_episodes):
            support, query = (
                self._gathered(model.data, part.inputs, labels, torch.from_numpy(index)[None])
                for index in self.episode(members, rng)
            )
            x = model.w[None]
            for _ in range(self.test_steps):
                x = self.adapted(model.net, x.detach().requires_grad_(), support, False)
            with torch.no_grad():
                scores = model.net.scores(x, query.inputs, train=False)
            if not bool(torch.isfinite(scores).all()):
                raise FloatingPointError("scores became non-finite")
            for name, value in self.results(scores, query.labels).items():
                rows.setdefault(name, []).append(float(value))
        return {name: float(np.mean(values)) for name, values in rows.items()}


def _scores(net: Net, x: Tensor, inputs: Tensor, train: bool = True) -> Tensor:
    """Return the scores [E, n, C] of E models [E, d] on their own inputs [E, n, ...].

    For several models at once, convolutions are grouped, which on a CPU is many times slower than model by model.
    """
    if inputs.dim() < 5 or inputs.device.type != "cpu":
        return net.scores(x, inputs, train=train)
    return torch.cat([net.scores(x[e : e + 1], inputs[e : e + 1], train=train) for e in range(len(x))])
