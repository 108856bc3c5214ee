"""Intervals, verdicts and rank agreement."""

from __future__ import annotations

import math

import pytest
from scipy import stats as scipy_stats

from fedbench.report.stats import (
    difference_half_width,
    half_width,
    higher_is_better,
    rank_agreement,
    verdict,
)


def test_half_width_is_the_t_interval_and_needs_two_seeds() -> None:
    assert half_width(1.0, 3) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert half_width(1.0, 1) is None
    assert half_width(math.nan, 3) is None


def test_difference_is_welch_with_two_spreads_and_one_sided_with_one() -> None:
    values, other = [0.80, 0.83, 0.86], [0.70, 0.71, 0.75, 0.72]
    interval = scipy_stats.ttest_ind(values, other, equal_var=False).confidence_interval(0.95)
    std, other_std = scipy_stats.tstd(values), scipy_stats.tstd(other)
    assert difference_half_width(std, 3, other_std, 4) == pytest.approx((interval.high - interval.low) / 2)
    assert difference_half_width(std, 3) == half_width(std, 3)
    assert difference_half_width(std, 3, other_std, None) == half_width(
        std, 3
    )  # paper gives no number of runs
    assert difference_half_width(None, 1) is None
    assert difference_half_width(0.0, 3) == 0.0


@pytest.mark.parametrize(
    ("mean", "half", "kind", "basis"),
    [
        (0.943, None, "matches", "tolerance"),  # 0.943 - 0.933 is a hair above 0.01 in binary
        (0.923, None, "matches", "tolerance"),
        (0.9431, None, "better", ""),
        (0.9229, None, "worse", ""),
        (0.9229, 0.0101, "matches", "interval"),
        (0.9229, 0.0100, "worse", ""),
        (0.9350, 0.5, "matches", "tolerance"),  # a wide interval does not hide that the tolerance was met
    ],
)
def test_verdict_at_its_edges(mean: float, half: float | None, kind: str, basis: str) -> None:
    judged = verdict(mean, 0.933, 0.01, half)
    assert (judged.kind, judged.basis) == (kind, basis)
    assert judged.difference == pytest.approx(mean - 0.933)


def test_lower_losses_are_better() -> None:
    assert verdict(0.2, 0.5, 0.01, higher_is_better=higher_is_better("test_loss")).kind == "better"
    assert verdict(0.2, 0.5, 0.01, higher_is_better=higher_is_better("test_auc")).kind == "worse"


def test_rank_agreement_counts_common_methods_and_handles_ties() -> None:
    ours = {"a": 3.0, "b": 2.0, "c": 1.0, "mine": 9.0}
    assert rank_agreement(ours, {"a": 0.9, "b": 0.8, "c": 0.7}) == (1.0, 3)
    assert rank_agreement(ours, {"a": 0.7, "b": 0.8, "c": 0.9}) == (-1.0, 3)
    tau, _ = rank_agreement(ours, {"a": 0.9, "b": 0.7, "c": 0.7})
    assert tau == pytest.approx(2 / math.sqrt(3 * 2))  # tau-b: two concordant pairs, one tied in one order
    assert rank_agreement(ours, {"a": 0.9}) == (None, 1)
    assert rank_agreement(ours, {"a": 0.9, "b": 0.9}) == (None, 2)
