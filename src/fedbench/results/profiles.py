"""Performance profiles: how many results come within a factor of the best one, for every factor.

Dolan and Moré (2002) compare solvers so over problems; the share of single runs with a bootstrap of seeds within each
setting is that of Agarwal et al. (2021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedbench.results.statistics import COVERAGE, Array

DRAWS = 2000


def profile(ratios: Sequence[Array], factors: Array) -> Array:
    """Return for each factor the share of results that are at most this factor.

    Args:
        ratios: for each setting the results of a method, one a seed, as multiples of the best method's mean.
        factors: where the profile is evaluated.

    All settings weigh the same, however many seeds they have.
    """
    shares: Array = _shares([of[None] for of in ratios], factors)[0]
    return shares


def band(ratios: Sequence[Array], factors: Array, draws: int = DRAWS) -> tuple[Array, Array]:
    """Return the ends of the bootstrap interval of a profile: seeds are drawn again within each setting."""
    generator = np.random.default_rng(0)
    again = _shares([of[generator.integers(len(of), size=(draws, len(of)))] for of in ratios], factors)
    low, high = np.quantile(again, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=0)
    return low, high


def _shares(ratios: Sequence[Array], factors: Array) -> Array:
    """Return profiles [draws, factors] of results, for each setting [draws, seeds]."""
    shares: Array = np.mean([np.mean(of[:, :, None] <= factors, axis=1) for of in ratios], axis=0)
    return shares
