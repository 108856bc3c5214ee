"""Which samples a batch holds: endless passes over a few, and a fixed number of positives beside negatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedbench.errors import UserError
from fedbench.spec import TrainSpec


class Cycle:
    """Batches of ``size`` from endless passes over ``n`` members, each pass in an order of its own.

    Nothing is dropped: after any number of batches the uses of two members differ by at most one. A batch that ends
    one pass and begins the next holds no member twice, unless there are fewer members than it has places.

    Args:
        n: how many members there are, at least 1.
        size: members a batch.
        shuffled: pass -> a random permutation of ``n``, always the same for the same pass.
    """

    def __init__(self, n: int, size: int, shuffled: Callable[[int], np.ndarray]) -> None:
        self._n, self._size, self._shuffled = n, size, shuffled
        self._pass, self._order = 0, shuffled(0)
        # passes from one that begins with a batch to the next: what lies before such a pass does not matter to it
        self._apart = 1 if n < size else size // math.gcd(n, size)

    def batch(self, step: int) -> np.ndarray:
        """Return the members ``[size]`` int64 of batch number ``step``; steps may be asked for in any order."""
        at, end = step * self._size, (step + 1) * self._size
        parts = []
        while at < end:
            number, inside = divmod(at, self._n)
            part = self._in_pass(number)[inside : inside + end - at]
            parts.append(part)
            at += len(part)
        return np.concatenate(parts)

    def _in_pass(self, number: int) -> np.ndarray:
        """Return the order of a pass, which depends on the one before it unless it begins with a batch."""
        start = number - number % self._apart
        if not start <= self._pass <= number:
            self._pass, self._order = start, self._shuffled(start)
        while self._pass < number:
            self._pass += 1
            self._order = self._following(self._shuffled(self._pass))
        return self._order

    def _following(self, order: np.ndarray) -> np.ndarray:
        """Move to later what the batch that began in the last pass holds already."""
        begun = self._pass * self._n % self._size
        if not begun or self._n < self._size:
            return order
        held = np.isin(order, self._order[-begun:])
        first = order[~held][: self._size - begun]
        return np.concatenate([first, order[~np.isin(order, first)]])


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
