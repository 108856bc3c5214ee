"""Classification that also measures the exact gradient norm of the square surrogate of the AUC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Net
from fedbench.objectives.metrics import binary_metrics
from fedbench.spec import TrainSpec
from fedbench.task import Model, Part
from fedbench.tasks import classification


@dataclass(frozen=True)
class Task(classification.Task):
    """Trains as ``classification`` does; measures the AUC and the gradient norm of the objective of min-max methods.

    For fixed parameters w, the saddle value of F (:mod:`fedbench.objectives.auc_minimax`) is, up to a constant,

        phi(w) = p (1-p) E[(1 - s+ + s-)^2] = p (1-p) ((1 - m+ + m-)^2 + v+ + v-),

    with m and v the mean and variance (divisor n) of the logits of positives (+) and negatives (-), and p the share of
    positives. ``gradient_norm`` is the Euclidean norm of the gradient of phi by w on the measured part. It is exact
    for methods with ``score: logit``, no weight decay and clients of equal size.
    """

    measures: ClassVar[tuple[str, ...]] = ("auc", "gradient_norm")

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse several classes."""
        super().check(data, arrays, net)
        if arrays.n_classes != 2:
            raise UserError(
                f"task 'auc_square' is for two classes, and the data have {arrays.n_classes}: set data.labels"
            )

    def measured(self, n_classes: int, train: TrainSpec) -> tuple[str, ...]:
        """Return both metrics."""
        return self.measures

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure AUC and gradient norm.

        Raises:
            FloatingPointError: a score is not finite.
        """
        leaf = model.net.leaf(model.w[None])
        statistics = None if model.buffers is None else model.buffers[None]
        inputs = model.data.prepare(part.inputs)[None]
        scores = model.net.scores(leaf, inputs, statistics, train=False)[0, :, 0]
        if not bool(torch.isfinite(scores).all()):
            raise FloatingPointError("scores became non-finite")
        positive = torch.from_numpy(part.labels == 1).to(scores.device)
        high, low = scores[positive], scores[~positive]
        p = len(high) / len(scores)
        spread = high.var(correction=0) + low.var(correction=0)
        phi = p * (1 - p) * ((1 - high.mean() + low.mean()) ** 2 + spread)
        (gradient,) = leaf.gradient(phi)
        auc = binary_metrics(scores.detach().cpu().numpy(), part.labels)["auc"]
        return {"auc": auc, "gradient_norm": float(gradient.norm())}
