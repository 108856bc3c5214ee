"""Average precision maximised online (fcsg), two classes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.contract.task import Conditional, ConditionalTask, Model, Part, Rounds
from fedbench.data.batch import Batch
from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.objectives.metrics import binary_metrics
from fedbench.tasks._nested import Nested, at_least, need_period

log = logging.getLogger(__name__)

NAME = "average_precision"
LEAST = 1e-8
"""Least mean surrogate that is divided by."""


@dataclass(frozen=True)
class Task(ConditionalTask):
    """``max_w E_{z+} E_z 1[y_z = 1] l(z+, z) / E_z l(z+, z)``, l(z+, z) = max(margin - h(z+) + h(z), 0)^2,

    h the sigmoid of the network's score.

    An outer sample is a positive z+, drawn by a stream of its own; the inner samples are the ordinary mini-batch, the
    same for all z+ and for every other method, and the positives drawn with it: without them a batch may hold none,
    and the numerator vanishes. f(u) = -u_1 / u_2 is minimised.

    Attributes:
        positives: outer samples of a step.
        margin: s_0.
    """

    positives: int
    margin: float

    measures: ClassVar[tuple[str, ...]] = ("auc", "ap")
    spread: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least(NAME, "positives", self.positives, 1)
        at_least(NAME, "margin", self.margin, 0, above=True)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse several classes, local epochs, and clients that all lack positives."""
        need_period(NAME, data)
        if arrays.n_classes != 2:
            raise UserError(
                f"task {NAME!r} ranks positives before negatives; these are {arrays.n_classes} classes"
            )
        without = [k for k in range(len(data.sizes)) if not len(self._positives(data, k))]
        if len(without) == len(data.sizes):
            raise UserError(f"task {NAME!r}: no client has a positive sample")
        if without:
            log.warning(
                "task %r: %d of %d clients have no positive sample and learn nothing: %s",
                NAME, len(without), len(data.sizes), ", ".join(map(str, without)),
            )  # fmt: skip

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Add to each mini-batch positives, which walk through those of the client."""
        work, steps = data.work(clients, round_index, purpose), data.steps(round_index)
        drawn = [self._drawn(data, client, steps, purpose) for client in clients]
        more = sum(len(batch) for batches in drawn for batch in batches)
        return Nested(
            work, lambda step, inner: self._pair(data, clients, [own[step] for own in drawn], inner), more
        )

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Rounds:
        """Draw one nested batch of each client."""
        drawn = [self._drawn(data, client, [0], purpose)[0] for client in clients]
        return Nested(
            data.first(clients, purpose),
            lambda step, inner: self._pair(data, clients, drawn, inner),
            sum(map(len, drawn)),
        )

    def _positives(self, data: ClientData, client: int) -> np.ndarray:
        own = data.labels[data.offsets[client] : data.offsets[client + 1]]
        return np.flatnonzero(own.cpu().numpy() == 1)

    def _drawn(self, data: ClientData, client: int, steps: Sequence[int], purpose: str) -> list[np.ndarray]:
        members = self._positives(data, client)
        return data.cycle(client, members, min(self.positives, len(members)), steps, f"outer {purpose}")

    def _pair(
        self, data: ClientData, clients: Sequence[int], drawn: Sequence[np.ndarray], inner: Batch
    ) -> Conditional:
        """Put positives [K, b] beside a mini-batch; where a client has fewer, their share is 0."""
        index = np.zeros((len(clients), self.positives), dtype=np.int64)
        share = np.zeros(index.shape)
        for row, (client, own) in enumerate(zip(clients, drawn, strict=True)):
            index[row, : len(own)] = own
            share[row, : len(own)] = 1 / max(len(own), 1)
            index[row] += data.offsets[client]
        outer = data.gather(torch.from_numpy(index))
        weight = torch.from_numpy(share).to(data.device, torch.get_default_dtype())
        return Conditional(outer._replace(weight=weight), inner)

    def inner_size(self, net: Net) -> int:
        """Return 2: numerator and denominator."""
        return 2

    def inner(self, net: Net, w: Tensor | Leaf, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return u = (mean of 1[y = 1] l, mean of l) over the inner samples, for each positive: [K, b, 2]."""
        outer, ordinary = batch
        b = outer.labels.shape[1]
        together = torch.cat([outer.inputs, ordinary.inputs], 1)
        h = net.scores(w, together, buffers)[..., 0].sigmoid()
        labels = torch.cat([outer.labels, ordinary.labels], 1)
        assert outer.weight is not None
        there = torch.ones_like(ordinary.labels) if ordinary.weight is None else ordinary.weight > 0
        counted = torch.cat([outer.weight > 0, there.bool()], 1).to(h.dtype)
        surrogate = (self.margin - h[:, :b, None] + h[:, None]).clamp(min=0).square()  # [K, b, b + B]
        share = counted / counted.sum(1, keepdim=True)
        weights = torch.stack([share * (labels == 1), share], -1)  # [K, b + B, 2]
        return surrogate @ weights

    def outer(self, net: Net, u: Tensor, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return the mean over the positives of -u_1 / u_2, [K]; 0 for a client that has none."""
        assert batch.outer.weight is not None
        return -(batch.outer.weight * u[..., 0] / u[..., 1].clamp(min=LEAST)).sum(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure scores against labels."""
        return binary_metrics(model.outputs(part.inputs)[:, 0].cpu().numpy(), part.labels)
