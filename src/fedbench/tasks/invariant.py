"""Invariant logistic regression (fcsg; Hu et al.): classify points that are seen only in noisy copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.data.round_batches import Batch
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.random import stream
from fedbench.task import Conditional, ConditionalTask, Model, Part, Rounds
from fedbench.tasks._nested import Drawn, Nested, at_least, need_period

NAME = "invariant"


@dataclass(frozen=True)
class Task(ConditionalTask):
    """``min_w E_{a, y} log(1 + exp(-y E_{eta | a} s_w(eta))) + R(w)``,

        R(w) = penalty_weight sum_i gamma w_i^2 / (1 + gamma w_i^2),

    with eta ~ N(a, sigma^2 I) and s_w the network's score; the mean score of ``copies`` noisy copies estimates the
    inner expectation. An outer sample is a point of the mini-batch with its label; each use of a point draws new
    copies. Metrics are measured on clean points: the inner expectation of a linear score is the score of the clean
    point, so that the metrics are those of the objective itself.

    Attributes:
        sigma: standard deviation of the noise.
        copies: inner samples of each outer sample, m.
        first_samples: outer samples of the first gradient, B.
        penalty_weight: weight of the non-convex penalty R.
        penalty_gamma: steepness gamma of R.
    """

    sigma: float
    copies: int
    first_samples: int
    penalty_weight: float
    penalty_gamma: float

    measures: ClassVar[tuple[str, ...]] = ("accuracy", "loss", "gradient_norm")
    spread: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least(NAME, "sigma", self.sigma, 0)
        at_least(NAME, "copies", self.copies, 1)
        at_least(NAME, "first_samples", self.first_samples, 1)
        at_least(NAME, "penalty_weight", self.penalty_weight, 0)
        at_least(NAME, "penalty_gamma", self.penalty_gamma, 0)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse images, more than two classes, local epochs, and clients with fewer than ``first_samples`` samples."""
        need_period(NAME, data)
        if arrays.n_classes != 2 or data.inputs.dim() != 2:
            raise UserError(f"task {NAME!r} takes vectors of two classes, such as the dataset 'ilr'")
        if data.spec.augment != "none" or data.spec.normalize is not None or data.spec.noise is not None:
            raise UserError(
                f"task {NAME!r} makes its own noise: train.augment, train.normalize and train.noise are for images"
            )
        if min(data.sizes) < self.first_samples:
            raise UserError(
                f"task {NAME!r}: a client has fewer than first_samples = {self.first_samples} samples"
            )

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Take mini-batches as outer samples, and draw the copies of a client's whole round at once."""
        work = data.work(clients, round_index, purpose)
        widest, features = max(map(data.batch_size, clients)), data.inputs.shape[1]
        noise = np.zeros((work.steps, len(clients), widest, self.copies, features), dtype=np.float32)
        for row, client in enumerate(clients):
            shape = (work.steps, data.batch_size(client), self.copies, features)
            rng = stream(data.seed, f"inner {purpose}", client, round_index)
            noise[:, row, : shape[1]] = rng.standard_normal(shape, dtype=np.float32)
        everyone = torch.from_numpy(noise).to(data.device)
        return Nested(
            work, lambda step, outer: self._noisy(outer, everyone[step]), work.samples * self.copies
        )

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Drawn:
        """Draw ``first_samples`` points of each client, and ``copies`` of each point."""
        drawn = [data.draw(client, self.first_samples, purpose) for client in clients]
        outer = Batch(torch.cat([part.inputs for part in drawn]), torch.cat([part.labels for part in drawn]))
        shape = (outer.labels.shape[1], self.copies, data.inputs.shape[1])
        noise = [
            stream(data.seed, f"inner {purpose}", client).standard_normal(shape, dtype=np.float32)
            for client in clients
        ]
        batch = self._noisy(outer, torch.from_numpy(np.stack(noise)).to(data.device))
        return Drawn([batch], len(clients), outer.labels.numel() * (1 + self.copies), data.device)

    def _noisy(self, outer: Batch, noise: Tensor) -> Conditional:
        copies = outer.inputs[:, :, None] + self.sigma * noise.to(outer.inputs.dtype)
        return Conditional(outer, Batch(copies, outer.labels[:, :, None].expand(copies.shape[:3])))

    def inner(self, net: Net, w: Tensor | Leaf, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return the mean score of each point's copies: [K, b, 1]."""
        copies = batch.inner.inputs
        scores = net.scores(w, copies.flatten(1, 2), buffers)
        return scores.view(*copies.shape[:3], 1).mean(2)

    def outer(self, net: Net, u: Tensor, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return the mean logistic loss at the mean scores, [K]."""
        return cross_entropy(u, batch.outer.labels, batch.outer.weight)

    def penalty(self, net: Net, w: Tensor | Leaf) -> Tensor:
        """Return the non-convex penalty of all parameters, [K]."""
        squares = self.penalty_gamma * (w.flat() if isinstance(w, Leaf) else w).square()
        return self.penalty_weight * (squares / (1 + squares)).sum(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return accuracy, objective and gradient norm of the objective, on clean points.

        Raises:
            FloatingPointError: the objective is not finite.
        """
        leaf = model.net.leaf(model.w[None])
        inputs = model.data.prepare(part.inputs)[None]
        labels = torch.from_numpy(part.labels).to(part.inputs.device)[None]
        scores = model.net.scores(leaf, inputs, train=False)
        loss = cross_entropy(scores, labels) + self.penalty(model.net, leaf)
        if not bool(torch.isfinite(loss).all()):
            raise FloatingPointError("the objective became non-finite")
        (gradient,) = leaf.gradient(loss)
        right = (scores[..., 0] > 0) == (labels == 1)
        return {
            "accuracy": float(right.double().mean()),
            "loss": float(loss.detach()),
            "gradient_norm": float(gradient.norm()),
        }
