"""Which samples a batch holds: passes over a few or over all, and a fixed number of positives beside negatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import TrainSpec


class Cycle:
    """Batches of ``size`` from endless passes over ``n`` members, each pass in an order of its own.

    Nothing is dropped: after any number of batches the uses of two members differ by at most one. A batch that ends
    one pass and begins the next holds no member twice, unless there are fewer members than it has places. ``shuffled``
    returns the order of a pass, a permutation of ``n``.
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
    """Which of each client's samples are positives (label 1) and negatives, and how many of them a batch holds.

    A client that has fewer than ``train.positives`` gives all it has, or where they are a share some several times;
    ``alike`` says whether all samples of a batch weigh the same.
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


class Orders:
    """The order in which each client visits its samples.

    Batches depend on (seed, purpose, client, epoch) alone, so every method of a setting sees the same ones. With
    ``train.positives`` a batch is a fixed number of positives, then negatives, each class visited in its own order.

    Raises:
        UserError: a client has no sample, or ``train.positives`` does not fit the labels.
    """

    def __init__(self, labels: Sequence[np.ndarray], n_classes: int, spec: TrainSpec, seed: int) -> None:
        self.spec, self.seed = spec, seed
        self.sizes = [len(of_client) for of_client in labels]
        if 0 in self.sizes:
            raise UserError(
                f"client {self.sizes.index(0)} has no training samples; use fewer clients or a milder partition"
            )
        self.pairs = Pairs(labels, n_classes, spec) if spec.positives is not None else None
        self._orders: dict[tuple[str, int], tuple[int, np.ndarray]] = {}
        self._cycles: dict[tuple[str, int, int, int], Cycle] = {}

    def batch_size(self, client: int) -> int:
        """The client's mini-batch size: never more than it has samples."""
        if self.pairs is not None:
            return sum(self.pairs.counts(client))
        size = self.sizes[client]
        if self.spec.batches_per_epoch is not None:
            return max(1, size // self.spec.batches_per_epoch)
        assert self.spec.batch_size is not None
        return min(self.spec.batch_size, size)

    def plan(self, client: int, round_index: int, purpose: str = "batches") -> list[np.ndarray]:
        """Return the positions (in the client's own samples) of each batch of its round.

        With a period, a client walks through one endless stream of reshuffled epochs, incomplete batches dropped; with
        a number of positives, through one for each class, nothing dropped. With local epochs, each round reshuffles
        and keeps the incomplete last batch.
        """
        size = self.batch_size(client)
        if (epochs := self.spec.local_epochs) is not None:
            times = range(round_index * epochs, (round_index + 1) * epochs)
            orders = [_shuffled(self.seed, purpose, client, time, self.sizes[client]) for time in times]
            return [order[at : at + size] for order in orders for at in range(0, len(order), size)]
        steps = self.steps(round_index)
        if self.pairs is not None:
            return self._stratified(self.pairs, client, steps, purpose)
        per_epoch = self.sizes[client] // size
        batches = []
        for step in steps:
            epoch, index = divmod(step, per_epoch)
            batches.append(self._order(purpose, client, epoch)[index * size : (index + 1) * size])
        return batches

    def steps(self, round_index: int) -> range:
        """Return the numbers of a round's steps, counted from the start of the run."""
        assert self.spec.period is not None
        return range(round_index * self.spec.period, (round_index + 1) * self.spec.period)

    def cycle(
        self, client: int, members: np.ndarray, size: int, steps: Sequence[int], purpose: str
    ) -> list[np.ndarray]:
        """Return the batches ``[size]`` of numbered ``steps`` from some of a client's samples (:class:`Cycle`).

        ``members`` are positions in the client's own samples, always the same for the same purpose, which is the stream
        that shuffles. A size above their number takes some several times.
        """
        if not size:
            return [np.empty(0, dtype=np.int64)] * len(steps)
        place = (purpose, client, len(members), size)
        if place not in self._cycles:
            shuffled = functools.partial(_shuffled, self.seed, purpose, client, n=len(members))
            self._cycles[place] = Cycle(len(members), size, shuffled)
        return [members[self._cycles[place].batch(step)] for step in steps]

    def _stratified(self, pairs: Pairs, client: int, steps: Sequence[int], purpose: str) -> list[np.ndarray]:
        """Return a client's batches: positives first."""
        parts = [
            self.cycle(client, sign.members, sign.count, steps, f"{purpose}, {sign.name}")
            for sign in pairs.of(client)
        ]
        return [np.concatenate(signs) for signs in zip(*parts, strict=True)]

    def _order(self, purpose: str, client: int, epoch: int) -> np.ndarray:
        known = self._orders.get((purpose, client))
        if known is None or known[0] != epoch:
            known = (epoch, _shuffled(self.seed, purpose, client, epoch, self.sizes[client]))
            self._orders[purpose, client] = known
        return known[1]

    def _first(self, client: int, purpose: str) -> np.ndarray:
        if self.pairs is not None:
            return self._stratified(self.pairs, client, [0], purpose)[0]
        return self._drawn(client, self.batch_size(client), purpose, 0)

    def shape(self, client: int) -> tuple[int, ...]:
        """What clients have in common whose batches can be stacked without padding."""
        if self.pairs is not None:
            return self.pairs.counts(client)
        local = self.spec.local_epochs is not None
        return (self.batch_size(client), *([self.sizes[client]] if local else []))

    def _drawn(self, client: int, n: int, purpose: str, time: int) -> np.ndarray:
        return np.sort(_shuffled(self.seed, purpose, client, time, self.sizes[client])[:n])


def _shuffled(seed: int, purpose: str, client: int, time: int, n: int) -> np.ndarray:
    """Return a permutation; no method, as a cycle that held its data would keep them beyond the run."""
    if n == 1:  # clients with one positive ask for it thousands of times
        return np.zeros(1, dtype=np.int64)
    return stream(seed, purpose, client, time).permutation(n)
