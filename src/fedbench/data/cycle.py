"""Walking through a few samples over and over."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


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
