"""Ranks of methods that can be told apart, and Pareto fronts: literal numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedbench.results.leaderboard import Rank, on_front, ranks


def test_below_three_seeds_all_are_tied() -> None:
    assert ranks(np.array([[0.9, 0.9], [0.5, 0.5]])) == [Rank(1, 2), Rank(1, 2)]


def test_what_is_far_apart_in_every_seed_is_ranked_and_what_overlaps_shares_a_rank() -> None:
    noise = np.random.default_rng(0).normal(scale=0.001, size=(3, 10))
    result = ranks(np.array([[0.9], [0.9], [0.8]]) + noise)
    assert result == [Rank(1, 2), Rank(1, 2), Rank(3, 3)]
    assert [str(rank) for rank in result] == ["1–2", "1–2", "3"]


def test_seeds_are_paired() -> None:
    level = np.linspace(0, 1, 10)  # spreads far more than the methods differ
    wiggle = 0.001 * np.sin(np.arange(10))
    assert ranks(np.array([level + 0.01 + wiggle, level])) == [Rank(1, 1), Rank(2, 2)]


def test_equal_values_are_a_tie_however_many() -> None:
    values = np.tile(np.linspace(0.8, 0.9, 12), (2, 1))
    assert ranks(values) == [Rank(1, 2), Rank(1, 2)]
    assert ranks(np.array([[0.1 + 0.2] * 3, [0.3] * 3])) == [Rank(1, 2), Rank(1, 2)], "equal but for rounding"


def test_pairs_are_corrected_for_their_number() -> None:
    """Two methods that differ at p = .01 alone are tied among 30, of which 435 pairs are compared."""
    d = np.array([1.0, 2.0, 3.0, 0.5, 1.5, 2.5, -0.3, 1.0])
    assert 0.001 < stats.ttest_1samp(d, 0).pvalue < 0.02
    pair = np.array([d, np.zeros(8)])
    assert ranks(pair) == [Rank(1, 1), Rank(2, 2)]
    crowd = np.concatenate([pair, np.tile(d / 2, (28, 1))])
    assert ranks(crowd)[0] == Rank(1, 30)


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("steps", [0, 12, 36, 360])
def test_methods_that_are_exchangeable_are_seldom_told_apart(steps: int, seeds: int) -> None:
    """In 5 of 100 boards of 18 at most, however coarse the metric: an accuracy on so many samples, 0 for an exact one.

    With p = 0 for equal differences some were told apart in 66 of 100 boards with 36 samples and three seeds.
    """
    rng, boards = np.random.default_rng([steps, seeds]), 400
    shape = (boards, 18, seeds)
    values = rng.binomial(steps, 0.8, shape) / steps if steps else rng.normal(size=shape)
    wrong = sum(any(rank != Rank(1, 18) for rank in ranks(board)) for board in values)
    assert wrong / boards <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / boards)


def test_differences_spread_by_the_step_of_the_metric_at_least() -> None:
    """The least difference of two values is 0.02: differences that are all 0.02 tell nothing, those of 0.5 do."""
    for apart, told in ((0.02, False), (0.5, True)):
        values = np.array([[0.2, 0.22, 0.26], [0.2, 0.22, 0.26]]) + np.array([[apart], [0.0]])
        t = apart / (0.02 * math.sqrt(2 / 12)) * math.sqrt(3)
        assert (2 * stats.t.sf(t, 2) <= 0.05) == told
        assert (ranks(values)[0] == Rank(1, 1)) == told


def test_the_front_is_what_nobody_dominates() -> None:
    costs, values = [1.0, 2.0, 3.0, 2.0, float("nan")], [0.5, 0.8, 0.7, 0.8, 0.9]
    assert on_front(costs, values).tolist() == [True, True, False, True, True]
    assert on_front([1.0, 1.0], [0.5, 0.6]).tolist() == [False, True]
    assert on_front([1.0, 2.0, 3.0], [0.5, 0.6, 0.4]).tolist() == [True, True, False]
