"""Intervals, tests and fits against SciPy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedbench.results.claims.judge import detectable
from fedbench.results.statistics import (
    false_discovery,
    half_width,
    holm,
    least_spread,
    p_above,
    prediction_half_width,
    rank_agreement,
    slope,
)


def test_half_width_is_the_t_interval_and_needs_two_seeds() -> None:
    values = [0.80, 0.83, 0.86, 0.81]
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.90)
    assert half_width(np.std(values, ddof=1), 4) == pytest.approx((interval.high - interval.low) / 2)
    assert np.isnan(half_width([1.0, math.nan], [1, 3])).all()


def test_print_counts_as_one_run_that_spreads_as_ours_do() -> None:
    """The two-sample t of n and m values whose spread is known from the first alone."""
    assert prediction_half_width(0.01, 3) == pytest.approx(stats.t.ppf(0.95, 2) * 0.01 * math.sqrt(1 / 3 + 1))
    assert prediction_half_width(0.01, 3, math.nan, 4) == pytest.approx(
        stats.t.ppf(0.95, 2) * 0.01 * math.sqrt(1 / 3 + 1 / 4)
    )
    many = prediction_half_width(np.full(3, 0.01), np.array([5, 100, 10**6]))
    assert many[-1] == pytest.approx(1.645 * 0.01, rel=1e-3), (
        "no number of our seeds makes print more certain"
    )
    assert (many > 1.6448 * 0.01).all()
    assert math.isnan(prediction_half_width(math.nan, 1)) and prediction_half_width(0.0, 3) == 0.0


def test_the_interval_is_welchs_where_print_has_a_spread() -> None:
    values, other = [0.80, 0.83, 0.86], [0.70, 0.71, 0.75, 0.72]
    interval = stats.ttest_ind(values, other, equal_var=False).confidence_interval(0.90)
    spreads = np.std(values, ddof=1), np.std(other, ddof=1)
    half = prediction_half_width(spreads[0], 3, spreads[1], 4)
    assert half == pytest.approx((interval.high - interval.low) / 2)
    of_two = prediction_half_width(spreads[0], 3, spreads[1], 2)
    assert prediction_half_width(spreads[0], 3, spreads[1]) == of_two, "a spread takes two runs at least"
    assert prediction_half_width(0.0, 3, 0.0, 4) == 0.0


@pytest.mark.parametrize("seeds", [3, 5, 7, 12])
def test_tests_are_scipys(seeds: int) -> None:
    d = np.random.default_rng(seeds).normal(0.3, 1, seeds)
    p = stats.ttest_1samp(d, 0.1, alternative="greater").pvalue
    assert p_above(d, 0.1) == pytest.approx(p)
    missing, won, lost = p_above([[*d, math.nan], [*d, math.inf], [*d, -math.inf]], 0.1)
    assert (missing, won, lost) == (p_above(d, 0.1), p_above([*d, d.max()], 0.1), 1.0)


def test_what_is_equal_but_for_rounding_is_equal() -> None:
    third = 0.1 + 0.2  # not 0.3
    assert p_above([0.3, third, 0.3], 0) == 0


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.5, 7 / 9, 5 / 9, 0.555556], 1 / 18),  # in six digits, too
        ([0.3, 0.3, 0.3], 0.0),
        ([0.0, 0.25, math.inf, math.nan, 1.0], 0.25),
        ([], 0.0),
    ],
)
def test_the_least_difference_of_values_bounds_the_step_of_a_metric(values: list[float], step: float) -> None:
    assert least_spread(values) == pytest.approx(step * (2 / 12) ** 0.5, rel=1e-4)


def test_one_seed_shows_nothing() -> None:
    assert p_above([0.9], 0.1) == 1


def test_holm_steps_down() -> None:
    assert holm(np.array([0.01, 0.04, 0.03, 0.5])) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_slope_of_logarithms() -> None:
    assert slope([1, 2, 4], [3, 6, 12]) == pytest.approx(1.0)
    assert math.isnan(slope([1, 2], [3, 6])) and math.isnan(slope([1, 2, 4], [0, 6, 12]))
    assert math.isnan(slope([0, 2, 4], [3, 6, 12]))


def test_rank_agreement_handles_ties_and_takes_three() -> None:
    ours = np.array([3.0, 2.0, 1.0])
    assert rank_agreement(ours, np.array([0.9, 0.8, 0.7])) == 1.0
    assert rank_agreement(ours, np.array([0.7, 0.8, 0.9])) == -1.0
    assert rank_agreement(ours, np.array([0.9, 0.7, 0.7])) == pytest.approx(2 / math.sqrt(6))  # tau-b
    draws = np.random.default_rng(0).integers(0, 6, (50, 2, 8)).astype(float)
    for first, other in draws:
        assert rank_agreement(first, other) == pytest.approx(stats.kendalltau(first, other).statistic)
    assert math.isnan(rank_agreement(ours, np.full(3, 0.9)))
    assert math.isnan(rank_agreement(ours[:2], np.array([0.9, 0.8]))), "an order of two is a toss"


def test_false_discoveries_leave_nan_out() -> None:
    ps = [0.03, math.nan, 0.01, 0.5, 0.02]
    known = stats.false_discovery_control([p for p in ps if not math.isnan(p)])
    assert false_discovery(ps) == pytest.approx([known[0], math.nan, *known[1:]], nan_ok=True)
    assert false_discovery([math.nan]) == pytest.approx([math.nan], nan_ok=True)


@pytest.mark.parametrize("seeds", [3, 5, 8, 10])
def test_what_is_detectable_is_detected_with_a_power_of_80_percent(seeds: int) -> None:
    shift, freedom = detectable(seeds) * math.sqrt(seeds), seeds - 1
    assert stats.nct.sf(stats.t.ppf(0.95, freedom), freedom, shift) == pytest.approx(0.8)
