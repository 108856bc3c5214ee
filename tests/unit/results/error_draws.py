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


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A longer tail than the exponential's: minus the exponential of a normal number, scaled to variance 1."""
    return (np.exp(0.5) - rng.lognormal(size=shape)) / np.sqrt((np.e - 1) * np.e)


def third_failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One run in three ends ten standard deviations of the others below them; scaled to variance 1."""
    low = rng.random(shape) < 1 / 3
    return (rng.normal(size=shape) - 10.0 * low + 10 / 3) / np.sqrt(1 + 200 / 9)


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": normal,
    "skewed": skewed,
    "failing": failing,
}
"""By name; each has mean 0 and variance 1."""


def slack(rate: float) -> float:
    """Return what chance adds to a rate: three standard errors of :data:`DRAWS` draws."""
    return 3 * float(np.sqrt(rate * (1 - rate) / DRAWS))
