"""Stochastic maximisation of the average precision (fcsg), for two classes."""

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
"""The smallest denominator u_2."""


@dataclass(frozen=True)
class Task(ConditionalTask):
    """``max_w E_{z+} E_z 1[y_z = 1] l(z+, z) / E_z l(z+, z)``, l(z+, z) = max(margin - h(z+) + h(z), 0)^2,

    with h the sigmoid of the network's score.

    An outer sample is a positive z+, drawn from a random stream of its own. The inner samples are the ordinary
    mini-batch, which is the same for all z+ and for all methods, and the outer samples. Without the outer samples an
    inner batch could have no positive, and the numerator would vanish. f(u) = -u_1 / u_2 is minimised. All inner
    samples weigh the same, so that E_z has a larger share of positives than the data. Methods with their own loss draw
    the same batches with the task ``more_positives``.

    Attributes:
        positives: outer samples of a step, drawn in addition to the mini-batch. 0: the outer samples are the positives
            of the mini-batch, which ``train.positives`` makes of exactly n positives and B - n negatives, as D-AUPRC
            does (3f96df4, utils.py 162-191). The task ``classification`` then draws the same batches; with the share
            n / B for ``train.positives``, all samples weigh the same there, too.
        margin: s_0, above 0.
    """

    positives: int
    margin: float

    measures: ClassVar[tuple[str, ...]] = ("auc", "ap")
    spread: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least(NAME, "positives", self.positives, 0)
        at_least(NAME, "margin", self.margin, 0, above=True)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse more than two classes, local epochs, and data in which no client has a positive."""
        need_period(NAME, data)
        if not self.positives and data.pairs is None:
            raise UserError(
                f"task {NAME!r}: positives 0 are those of a batch: say by train.positives how many it has"
            )
        if arrays.n_classes != 2:
            raise UserError(
                f"task {NAME!r} ranks positives before negatives; these are {arrays.n_classes} classes"
            )
        _positives.check_padding(NAME, data, self.positives, net)
        without = [k for k in range(len(data.sizes)) if not len(_positives.members(data, k))]
        if len(without) == len(data.sizes):
            raise UserError(f"task {NAME!r}: no client has a positive sample")
        if without:
            log.warning(
                "task %r: %d of %d clients have no positive sample and learn nothing: %s",
                NAME, len(without), len(data.sizes), ", ".join(map(str, without)),
            )  # fmt: skip

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Add positives of the client to each mini-batch, or take the mini-batch's own as outer samples."""
        if not self.positives:
            return _positives.inside(data.work(clients, round_index, purpose), data.spec.positives_of_batch)
        return _positives.rounds(data, clients, self.positives, round_index, purpose, Conditional)

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Rounds:
        """Draw one nested batch of each client."""
        if not self.positives:
            return _positives.inside(data.first(clients, purpose), data.spec.positives_of_batch)
        return _positives.first(data, clients, self.positives, purpose, Conditional)

    def inner_size(self, net: Net) -> int:
        """Return 2, for the numerator u_1 and the denominator u_2."""
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
        """Return the mean of -u_1 / u_2 over the positives, [K]; 0 for a client without positives."""
        assert batch.outer.weight is not None
        return -(batch.outer.weight * u[..., 0] / u[..., 1].clamp(min=LEAST)).sum(1)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return the AUC and the average precision of the model's scores."""
        return binary_metrics(self.scores(model, part)[:, 0], part.labels)

    def scores(self, model: Model, part: Part) -> np.ndarray:
        """Return the network's output [n, 1]."""
        return model.outputs(part.inputs).cpu().numpy()
