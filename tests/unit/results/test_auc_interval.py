"""Intervals of an AUC and of a gain over the draw of test samples; the correlation of two AUCs on the same patients."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from fedbench.results.auc_interval import auc_interval, correlation, gain_interval
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


def drawn(
    rng: np.random.Generator, sick: int, healthy: int, aucs: tuple[float, ...], share: float, digits: int = 9
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Labels, and scores of models with these AUCs, of whose variance a share is common."""
    labels = rng.permutation(np.arange(sick + healthy) < sick).astype(np.int64)
    common = rng.normal(0, math.sqrt(share), len(labels))
    apart = [math.sqrt(2) * norm.ppf(auc) for auc in aucs]
    scores = [common + rng.normal(0, math.sqrt(1 - share), len(labels)) + d * labels for d in apart]
    return labels, [np.round(of, digits) for of in scores]


def counted(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """For each pair of a positive and a negative whether it is in order, ties by half, averaged over seeds."""
    pairs = scores[:, labels == 1][:, :, None], scores[:, labels == 0][:, None, :]
    return ((pairs[0] > pairs[1]) + 0.5 * (pairs[0] == pairs[1])).mean(axis=0)


@pytest.mark.parametrize("digits", [9, 0])
def test_the_correlation_is_that_of_counting_all_pairs(digits: int) -> None:
    """DeLong et al. 1988, equations 5 and 6, as they are written; with no digits many scores are equal."""
    labels, scores = drawn(np.random.default_rng(0), 14, 23, (0.85, 0.8, 0.7, 0.75), 0.6, digits)
    pair = np.array(scores[:2]), np.array(scores[2:])
    kernels = [counted(labels, of) for of in pair]
    sums = np.zeros((2, 2))
    for (i, first), (j, second) in itertools.product(enumerate(kernels), repeat=2):
        of_sick = [(kernel.mean(axis=1) - kernel.mean()) for kernel in (first, second)]
        of_healthy = [(kernel.mean(axis=0) - kernel.mean()) for kernel in (first, second)]
        sums[i, j] = (of_sick[0] @ of_sick[1]) / (14 * 13) + (of_healthy[0] @ of_healthy[1]) / (23 * 22)
    expected = sums[0, 1] / math.sqrt(sums[0, 0] * sums[1, 1])
    assert correlation(labels, *pair) == pytest.approx(expected, rel=1e-12)
    assert 0.2 < expected < 0.95


def test_a_bootstrap_of_patients_finds_the_same() -> None:
    rng = np.random.default_rng(1)
    labels, scores = drawn(rng, 60, 90, (0.85, 0.75), 0.6)
    kernels = [counted(labels, of[None]) for of in scores]
    draws = [
        [kernel[np.ix_(sick, healthy)].mean() for kernel in kernels]
        for sick, healthy in ((rng.integers(0, 60, 60), rng.integers(0, 90, 90)) for _ in range(4000))
    ]
    bootstrap = np.corrcoef(np.array(draws).T)[0, 1]
    assert correlation(labels, scores[0][None], scores[1][None]) == pytest.approx(bootstrap, abs=0.03)


def test_the_ends_of_correlations() -> None:
    labels, (first, second) = drawn(np.random.default_rng(2), 10, 10, (0.8, 0.8), 0.5)
    assert correlation(labels, first[None], first[None]) == pytest.approx(1)
    assert correlation(labels, first[None], -first[None]) == pytest.approx(-1)
    assert math.isnan(correlation(labels, labels[None], second[None])), "a perfect AUC depends on no draw"
    for few in (np.arange(20) < 1, np.arange(20) < 0):
        assert math.isnan(correlation(few.astype(np.int64), first[None], second[None]))
    low, high = gain_interval(0.8, 0.8, 10, 10, 0.0, 1.0)
    assert low == pytest.approx(-high) and gain_interval(0.9, 0.9, 10, 10, 0.1, 1.0)[1] >= 0.1


@pytest.mark.parametrize(
    ("sick", "healthy", "aucs", "share"),
    [
        (20, 30, (0.85, 0.75), 0.5), (20, 30, (0.85, 0.75), 0.9), (15, 20, (0.97, 0.9), 0.6),
        (10, 40, (0.8, 0.8), 0.7), (100, 100, (0.7, 0.5), 0.4),
    ],
)  # fmt: skip
def test_the_paired_interval_covers_the_gain_and_is_shorter(
    sick: int, healthy: int, aucs: tuple[float, float], share: float
) -> None:
    """Taken for apart, two models that agree in part have an interval that covers more often."""
    rng, covered, widths, gain = np.random.default_rng(3), np.zeros(2), np.zeros(2), aucs[0] - aucs[1]
    for _ in range(600):
        labels, scores = drawn(rng, sick, healthy, aucs, share)
        means = [float(counted(labels, of[None]).mean()) for of in scores]
        known = correlation(labels, scores[0][None], scores[1][None])
        low, high = gain_interval(*means, sick, healthy, 0.0, 0.0 if math.isnan(known) else known)
        apart = gain_interval(*means, sick, healthy)
        covered += low <= gain <= high, apart[0] <= gain <= apart[1]
        widths += high - low, apart[1] - apart[0]
    assert COVERAGE - 0.04 < covered[0] / 600 < COVERAGE + 0.08 and covered[1] / 600 > COVERAGE
    assert widths[0] < 0.9 * widths[1]
