"""Draws of runs whose truth is known: what the error rates of verdicts are simulated with."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

DRAWS = int(os.environ.get("FEDBENCH_DRAWS", "4000"))
"""Of one case; `make error-rates` takes more."""
Array = NDArray[np.float64]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A few runs far below the others, as accuracies near their limit have them: minus an exponential."""
    return 1.0 - rng.exponential(size=shape)


def failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One run in five ends ten standard deviations of the others below them; scaled to variance 1."""
    low = rng.random(shape) < 0.2
    return (rng.normal(size=shape) - 10.0 * low + 2.0) / 17**0.5


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": normal,
    "skewed": skewed,
    "failing": failing,
}
"""By name; each has mean 0 and variance 1."""


def slack(rate: float) -> float:
    """Return what chance adds to a rate: three standard errors of :data:`DRAWS` draws."""
    return 3 * float(np.sqrt(rate * (1 - rate) / DRAWS))
