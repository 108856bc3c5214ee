"""Average precision maximised online (fcsg), two classes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.objectives.metrics import binary_metrics
from fedbench.task import Conditional, ConditionalTask, Model, Part, Rounds
from fedbench.tasks import _positives
from fedbench.tasks._nested import at_least, need_period

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
    and the numerator vanishes. f(u) = -u_1 / u_2 is minimised. All inner samples weigh the same, so that positives are
    more of E_z than of the data. Methods with a loss of their own draw the same batches by the task ``more_positives``.

    Attributes:
        positives: outer samples of a step, drawn beside the mini-batch. 0: those of the mini-batch itself, which
            ``train.positives`` gives exactly n positives and B - n negatives, as D-AUPRC does (3f96df4, utils.py
            162-191). The task ``classification`` draws the same; a share n / B lets all samples weigh the same there.
        margin: s_0.
    """

    positives: int
    margin: float

    measures: ClassVar[tuple[str, ...]] = ("auc", "ap")
    spread: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least(NAME, "positives", self.positives, 0)
        at_least(NAME, "margin", self.margin, 0, above=True)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse several classes, local epochs, and clients that all lack positives."""
        need_period(NAME, data)
        if not self.positives and data.pairs is None:
            raise UserError(
                f"task {NAME!r}: positives 0 are those of a batch: say by train.positives how many it has"
            )
        if arrays.n_classes != 2:
            raise UserError(
                f"task {NAME!r} ranks positives before negatives; these are {arrays.n_classes} classes"
            )
        without = [k for k in range(len(data.sizes)) if not len(_positives.members(data, k))]
        if len(without) == len(data.sizes):
            raise UserError(f"task {NAME!r}: no client has a positive sample")
        if without:
            log.warning(
                "task %r: %d of %d clients have no positive sample and learn nothing: %s",
                NAME, len(without), len(data.sizes), ", ".join(map(str, without)),
            )  # fmt: skip

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Add to each mini-batch positives, which walk through those of the client, or take its own."""
        if not self.positives:
            return _positives.inside(data.work(clients, round_index, purpose), data.spec.positives_of_batch)
        return _positives.rounds(data, clients, self.positives, round_index, purpose, Conditional)

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Rounds:
        """Draw one nested batch of each client."""
        if not self.positives:
            return _positives.inside(data.first(clients, purpose), data.spec.positives_of_batch)
        return _positives.first(data, clients, self.positives, purpose, Conditional)

    def inner_size(self, net: Net) -> int:
        """Return 2: numerator and denominator."""
        return 2

    def inner(self, net: Net, w: Tensor | Leaf, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return u = (mean of 1[y = 1] l, mean of l) over the inner samples, for each positive: [K, b, 2]."""
        b = batch.outer.labels.shape[1]
        inputs, labels, share = (
            _positives.together(*batch) if self.positives else _positives.alike(batch.inner)
        )
        assert share is not None
        h = net.scores(w, inputs, buffers)[..., 0].sigmoid()
        surrogate = (self.margin - h[:, :b, None] + h[:, None]).clamp(min=0).square()  # [K, b, b + B]
        weights = torch.stack([share * (labels == 1), share], -1)  # [K, b + B, 2]
        return surrogate @ weights

    def outer(self, net: Net, u: Tensor, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return the mean over the positives of -u_1 / u_2, [K]; 0 for a client that has none."""
        assert batch.outer.weight is not None
        return -(batch.outer.weight * u[..., 0] / u[..., 1].clamp(min=LEAST)).sum(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure scores against labels."""
        return binary_metrics(self.scores(model, part)[:, 0], part.labels)

    def scores(self, model: Model, part: Part) -> np.ndarray:
        """Return the network's output [n, 1]."""
        return model.outputs(part.inputs).cpu().numpy()
