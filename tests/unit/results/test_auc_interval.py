"""Intervals of an AUC over the draw of test samples: they cover what they should, at the ends too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fedbench.results.auc_interval import auc_interval, gain_interval
from fedbench.results.statistics import COVERAGE


@pytest.mark.parametrize(
    ("auc", "positives", "negatives"), [(0.8, 20, 20), (0.6, 30, 5), (0.9, 10, 40), (0.95, 15, 15)]
)
def test_the_interval_covers_the_auc_of_all_patients(auc: float, positives: int, negatives: int) -> None:
    """Normal scores; coverage is at most a little conservative, as Newcombe reports for his method 5."""
    generator, apart = np.random.default_rng(0), math.sqrt(2) * norm.ppf(auc)
    covered = 0
    for _ in range(2000):
        sick, healthy = generator.normal(apart, 1, positives), generator.normal(0, 1, negatives)
        low, high = auc_interval(float((sick[:, None] > healthy).mean()), positives, negatives)
        covered += low <= auc <= high
    assert COVERAGE - 0.02 < covered / 2000 < COVERAGE + 0.06


def test_few_samples_are_wide_intervals_and_a_perfect_auc_is_not_certain() -> None:
    low, high = auc_interval(1.0, 5, 5)
    assert 0.6 < low < 0.8 and high == 1
    assert auc_interval(1.0, 1, 1)[0] == pytest.approx(1 / (1 + norm.ppf(0.95) ** 2)), "one pair: Wilson's"
    assert auc_interval(0.0, 5, 5) == pytest.approx((0, 1 - low))
    wide, narrow = auc_interval(0.8, 20, 2), auc_interval(0.8, 2000, 200)
    assert narrow[1] - narrow[0] < 0.06 < 0.4 < wide[1] - wide[0]
    for of in ((0.8, 20, 0), (0.8, 0, 20), (math.nan, 5, 5)):
        assert all(map(math.isnan, auc_interval(*of)))


def test_a_gain_adds_what_is_uncertain_of_both_in_squares() -> None:
    low, high = auc_interval(0.8, 30, 20)
    both = math.hypot(0.8 - low, high - 0.8)
    assert gain_interval(0.8, 0.8, 30, 20) == pytest.approx((-both, both))
    assert gain_interval(0.8, 0.8, 30, 20, 0.5)[1] == pytest.approx(math.hypot(0.8 - low, high - 0.8, 0.5))
    ends, back = gain_interval(0.9, 0.6, 30, 20), gain_interval(0.6, 0.9, 30, 20)
    assert ends == pytest.approx((-back[1], -back[0])) and ends[0] < 0.3 < ends[1]
    assert all(map(math.isnan, gain_interval(0.9, 0.6, 30, 0)))


def test_the_interval_of_a_gain_covers_it_on_the_same_patients() -> None:
    """Scores of two models that agree in part; it takes them for apart, and so covers more often."""
    generator = np.random.default_rng(1)
    apart = [math.sqrt(2) * norm.ppf(auc) for auc in (0.85, 0.75)]
    covered = 0
    for _ in range(1000):
        shared = generator.normal(0, 0.7, 50)
        scores = [shared + generator.normal(0, math.sqrt(0.51), 50) + d * (np.arange(50) < 20) for d in apart]
        aucs = [float((s[:20, None] > s[20:]).mean()) for s in scores]
        low, high = gain_interval(*aucs, 20, 30)
        covered += low <= 0.1 <= high
    assert covered / 1000 > COVERAGE
