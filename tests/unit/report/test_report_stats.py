"""Intervals, verdicts and rank agreement."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy import stats as scipy_stats

from fedbench.measures import measure
from fedbench.report.numbers import rule
from fedbench.report.numbers.stats import (
    difference_half_width,
    half_width,
    rank_agreement,
    seeds_needed,
    verdict,
)
from fedbench.streams import stream


def test_half_width_is_the_t_interval_and_needs_two_seeds() -> None:
    assert half_width(1.0, 3) == pytest.approx(2.919986 / math.sqrt(3), rel=1e-6)
    assert half_width(1.0, 1) is None
    assert half_width(math.nan, 3) is None


def test_difference_is_welch_with_two_spreads_and_one_sided_with_one() -> None:
    values, other = [0.80, 0.83, 0.86], [0.70, 0.71, 0.75, 0.72]
    interval = scipy_stats.ttest_ind(values, other, equal_var=False).confidence_interval(0.90)
    std, other_std = scipy_stats.tstd(values), scipy_stats.tstd(other)
    assert difference_half_width(std, 3, other_std, 4) == pytest.approx((interval.high - interval.low) / 2)
    assert difference_half_width(std, 3) == pytest.approx(half_width(std, 3))
    assert difference_half_width(std, 3, other_std, None) == difference_half_width(
        std, 3
    )  # of unknown many runs
    assert difference_half_width(None, 1) is None
    assert difference_half_width(0.0, 3) == 0.0


README = Path(__file__).parents[3] / "README.md"
TOLERANCE, PRINTED = 0.01, 0.933
SPREAD = 0.002
HALF = 2.919986 * SPREAD / math.sqrt(3)  # of the 90 % interval of three seeds


@pytest.mark.parametrize(
    ("difference", "kind"),
    [
        (0.0, "matches"),
        (TOLERANCE - HALF - 1e-7, "matches"),  # all of the interval is inside
        (TOLERANCE - HALF + 1e-7, "inconclusive"),
        (TOLERANCE + HALF - 1e-7, "inconclusive"),
        (TOLERANCE + HALF + 1e-7, "better"),  # all of it is outside
        (HALF - TOLERANCE - 1e-7, "inconclusive"),
        (-TOLERANCE - HALF - 1e-7, "worse"),
    ],
)
def test_a_match_has_its_whole_interval_inside_the_tolerance(difference: float, kind: str) -> None:
    judged = verdict(PRINTED + difference, PRINTED, TOLERANCE, SPREAD, 3)
    assert (judged.kind, judged.basis) == (kind, "")
    assert judged.half_width == pytest.approx(HALF, rel=1e-6)
    assert judged.difference == pytest.approx(difference, abs=1e-12)


def test_noise_never_matches_and_a_stable_number_is_not_punished() -> None:
    """Two cells: 0.853 +- 0.129 of two seeds against 0.980, and 0.949 +- 0.000 against 0.963."""
    noisy = verdict(0.853, 0.980, TOLERANCE, 0.129, 2)
    assert noisy.kind == "inconclusive" and (noisy.half_width or 0) > 0.5
    assert verdict(0.980, 0.980, TOLERANCE, 0.129, 2).kind == "inconclusive"
    assert verdict(0.949, 0.963, TOLERANCE, 0.0, 3).kind == "worse"
    assert verdict(0.955, 0.963, TOLERANCE, 0.0, 3).kind == "matches"


def test_verdicts_are_wrong_in_at_most_one_of_twenty_cases() -> None:
    """At the edge of the tolerance neither a match nor a difference is true: each is said in 5 % of 4000 draws."""
    rng = stream(0, "verdicts")
    kinds = []
    for draw in rng.normal(PRINTED + TOLERANCE, SPREAD, size=(4000, 3)):
        kinds.append(verdict(draw.mean(), PRINTED, TOLERANCE, float(draw.std(ddof=1)), 3).kind)
    for kind in ("matches", "better"):
        assert kinds.count(kind) / len(kinds) == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(
    ("mean", "kind"),
    [
        (0.943, "matches"),
        (0.923, "matches"),
        (0.9431, "better"),
        (0.9229, "worse"),
    ],  # 0.943 - 0.933 > 0.01 in binary
)
def test_one_seed_is_held_against_the_tolerance_alone_and_marked(mean: float, kind: str) -> None:
    judged = verdict(mean, PRINTED, TOLERANCE, None, 1, other_std=0.5, other_n=3)
    assert (judged.kind, judged.basis, judged.half_width) == (kind, "one seed", None)


def test_seeds_needed_are_the_fewest_that_decide() -> None:
    judged = verdict(PRINTED + 0.006, PRINTED, TOLERANCE, 0.004, 3)
    assert judged.kind == "inconclusive" and judged.seeds is not None
    decided = [
        verdict(PRINTED + 0.006, PRINTED, TOLERANCE, 0.004, n).kind for n in (judged.seeds - 1, judged.seeds)
    ]
    assert decided == ["inconclusive", "matches"]
    assert seeds_needed(1.0, 1e-6) is None
    assert seeds_needed(0.001, 0.01, other_std=1.0, other_n=3) is None  # the paper's own spread is too wide
    # t / sqrt(n) at 90 %: 2.132 / 2.236 < 1 with five seeds, 1.782 / 3.606 < 0.5 with thirteen
    assert [seeds_needed(1.0, room) for room in (1.0, 0.5)] == [5, 13]


def test_lower_losses_are_better() -> None:
    higher = [measure(metric).better == "higher" for metric in ("test_loss", "test_auc")]
    assert [verdict(0.2, 0.5, 0.01, higher_is_better=it).kind for it in higher] == ["better", "worse"]


def test_rank_agreement_counts_common_methods_and_handles_ties() -> None:
    ours = {"a": 3.0, "b": 2.0, "c": 1.0, "mine": 9.0}
    assert rank_agreement(ours, {"a": 0.9, "b": 0.8, "c": 0.7}) == (1.0, 3)
    assert rank_agreement(ours, {"a": 0.7, "b": 0.8, "c": 0.9}) == (-1.0, 3)
    tau, _ = rank_agreement(ours, {"a": 0.9, "b": 0.7, "c": 0.7})
    assert tau == pytest.approx(2 / math.sqrt(3 * 2))  # tau-b: two concordant pairs, one tied in one order
    assert rank_agreement(ours, {"a": 0.9}) == (None, 1)
    assert rank_agreement(ours, {"a": 0.9, "b": 0.9, "c": 0.9}) == (None, 3)
    assert rank_agreement(ours, {"a": 0.9, "b": 0.8}) == (None, 2)  # an order of two is a toss


def test_the_readme_gives_the_rule_in_the_words_of_legends() -> None:
    said = " ".join(README.read_text(encoding="utf-8").split())
    for kind, meaning in rule.MEANING.items():
        line = f"**{kind}**: {meaning}"
        assert f"{rule.SYMBOLS[kind]} {line}" in said if kind in rule.SYMBOLS else line in said
