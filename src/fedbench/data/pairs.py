"""Batches of a fixed number of positives, the rest negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedbench.errors import UserError
from fedbench.spec import TrainSpec


@dataclass(frozen=True)
class Sign:
    """A client's samples of one sign: positions ``[n]`` among its own samples, and how many a batch holds."""

    name: str
    members: np.ndarray
    count: int


class Pairs:
    """Which of each client's samples are positives and negatives, and how many of them a batch holds.

    Args:
        labels: each client's labels as trained on, 1 for positives.
        n_classes: number of classes of the labels.
        spec: ``positives`` of ``batch_size`` samples are positives. A client that has fewer gives all it has, or where
            they are a share some of them several times.

    Attributes:
        alike: whether all samples of a batch weigh the same.
    """

    def __init__(self, labels: Sequence[np.ndarray], n_classes: int, spec: TrainSpec) -> None:
        if n_classes != 2:
            raise UserError(
                f"train.positives: {n_classes} classes have no positives and negatives; leave it out"
            )
        if spec.period is None:
            raise UserError("train.positives goes with period: the two signs have no local epochs in common")
        assert spec.batch_size is not None
        self.alike, positives = spec.oversamples, spec.positives_of_batch
        wanted = {"positives": positives, "negatives": spec.batch_size - positives}

        def sign(name: str, members: np.ndarray) -> Sign:
            most = len(members) if not self.alike else wanted[name] * bool(len(members))
            return Sign(name, members, min(wanted[name], most))

        self._signs = [
            [sign("positives", np.flatnonzero(y == 1)), sign("negatives", np.flatnonzero(y != 1))]
            for y in labels
        ]

    def of(self, client: int) -> list[Sign]:
        """Return a client's positives and its negatives."""
        return self._signs[client]

    def counts(self, client: int) -> tuple[int, int]:
        """Return how many positives and negatives a batch of the client holds; 0 of a sign that it lacks."""
        positives, negatives = self.of(client)
        return positives.count, negatives.count

    def shares(self, client: int) -> tuple[float, float]:
        """Return the share in a batch's mean of each negative and of each positive sample: of label 0 and 1.

        A sign weighs what it weighs among the client's samples, (n+/n)/B1 a positive: the mean stays unbiased. Where
        positives are a share of the batch, all samples weigh the same.
        """
        if self.alike:
            return 1 / sum(self.counts(client)), 1 / sum(self.counts(client))
        total = sum(len(sign.members) for sign in self.of(client))
        positive, negative = (len(sign.members) / total / max(sign.count, 1) for sign in self.of(client))
        return negative, positive
