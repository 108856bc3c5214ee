"""Performance profiles: shares by hand, and bootstrap bands that shrink with seeds."""

from __future__ import annotations

import numpy as np
import pytest

from fedbench.results.profiles import COVERAGE, band, profile

FACTORS = np.array([0.5, 1.0, 2.0, 3.0])


def test_shares_by_hand_settings_weigh_the_same() -> None:
    ratios = [np.array([1.0, 2.5]), np.array([1.0, 1.0, 1.0, 3.0])]
    assert profile(ratios, FACTORS) == pytest.approx([0, (0.5 + 0.75) / 2, (0.5 + 0.75) / 2, 1])


def test_bands_hold_the_profile_and_shrink_with_seeds() -> None:
    generator = np.random.default_rng(1)
    widths = []
    for seeds in (5, 50):
        ratios = [generator.uniform(1, 3, seeds) for _ in range(4)]
        low, high = band(ratios, FACTORS)
        assert (low <= profile(ratios, FACTORS)).all() and (profile(ratios, FACTORS) <= high).all()
        assert low[0] == high[0] == 0 and low[-1] == high[-1] == 1, "what no draw can change"
        widths.append(high[2] - low[2])
    assert 0 < widths[1] < widths[0] / 2


def test_a_band_is_that_of_profiles_drawn_one_after_another() -> None:
    generator = np.random.default_rng(3)
    ratios, factors = [generator.uniform(1, 3, seeds) for seeds in (9, 7)], np.linspace(1, 3, 9)
    again = np.random.default_rng(0)
    chosen = [again.choice(of, (100, len(of))) for of in ratios]
    drawn = [profile(of_draw, factors) for of_draw in zip(*chosen, strict=True)]
    for end, share in zip(
        band(ratios, factors, draws=100), ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2), strict=True
    ):
        assert (end == np.quantile(drawn, share, axis=0)).all()


def test_bands_cover_what_they_should() -> None:
    """The share of uniform ratios below 2 is a half: a 90 % band of 20 seeds at 3 settings has it in about 90 %."""
    generator = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        ratios = [generator.uniform(1, 3, 20) for _ in range(3)]
        low, high = band(ratios, np.array([2.0]), draws=300)
        covered += bool(low[0] <= 0.5 <= high[0])
    assert 0.82 <= covered / 200 <= 0.96


def test_settings_are_no_source_of_chance() -> None:
    """Seeds are drawn again within each setting, never settings: one that is always far keeps its half."""
    low, high = band([np.full(4, 1.0), np.full(4, 9.0)], np.array([2.0]))
    assert low[0] == high[0] == 0.5
