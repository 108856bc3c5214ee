"""How often verdicts are wrong when nothing is there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from error_draws import DRAWS, KINDS, slack

from fedbench.results.claims.judge import CONTRADICTED, SUPPORTED, verdict
from fedbench.results.claims.rules import Rule, p_values


class TestFalsePositives:
    """4,000 draws without the effect claimed: supported at most as often as the level says (three sigma added)."""

    draws = 4_000
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)

    def noise(self, components: int, places: int, seeds: int, shared: float = 0.0) -> np.ndarray:
        rng = np.random.default_rng([components, places, seeds])
        shape = (components, places, self.draws, seeds)
        return rng.normal(size=shape) + shared * rng.normal(size=shape[2:])

    @pytest.mark.parametrize("seeds", [3, 4, 5, 8])
    @pytest.mark.parametrize(("components", "places"), [(1, 1), (1, 6), (3, 4)])
    @pytest.mark.parametrize("holds", ["all", "average", "some"])
    def test_better(self, holds: str, components: int, places: int, seeds: int) -> None:
        """The null is at its edge: no effect anywhere (`all`: of the first place; the others are clear)."""
        values = self.noise(components, places, seeds, shared=0.5)
        if holds == "all":
            values[:, 1:] += 20
            values[1:] += 20
        elif holds == "average":
            values[1:] += 20
        elif holds == "some" and components > 1:
            values[1:] += 20  # one rival stands in the way everywhere
        supported = p_values(values, Rule("better", holds=holds))[0] <= 0.05  # type: ignore[arg-type]
        assert supported.mean() <= self.most
        if (holds, components, places) == ("average", 1, 1) and seeds < 5:
            assert supported.mean() > 0.04, "the test is not merely deaf"

    @pytest.mark.parametrize("holds", ["all", "average", "some"])
    @pytest.mark.parametrize("seeds", [3, 5])
    def test_contradicted(self, holds: str, seeds: int) -> None:
        against = p_values(self.noise(2, 3, seeds), Rule("better", holds=holds))[1] <= 0.05  # type: ignore[arg-type]
        assert against.mean() <= self.most

    @pytest.mark.parametrize("holds", ["all", "average", "some"])
    @pytest.mark.parametrize(("components", "places"), [(1, 1), (1, 6), (3, 4)])
    @pytest.mark.parametrize("seeds", [3, 5, 8])
    def test_not_supported(self, holds: str, components: int, places: int, seeds: int) -> None:
        """Every effect is just what matters: "smaller than that" is wrong."""
        rule = Rule("better", matters=1.5, holds=holds)  # type: ignore[arg-type]
        small = p_values(self.noise(components, places, seeds, shared=0.5) + 1.5, rule)[2] <= 0.05
        assert small.mean() <= self.most
        if (holds, components, places, seeds) == ("average", 1, 1, 3):
            assert small.mean() > 0.04, "the test is not merely deaf"

    @pytest.mark.parametrize("form", ["no_worse", "equal"])
    @pytest.mark.parametrize("seeds", [3, 5])
    def test_margins(self, form: str, seeds: int) -> None:
        values = self.noise(1, 1, seeds) - 1.5
        rule = Rule(form, margin=1.5)  # type: ignore[arg-type]
        supported, against, _ = p_values(values, rule)
        assert (supported <= 0.05).mean() <= self.most
        assert (against <= 0.05).mean() <= self.most

    def test_trend_over_all_orders(self) -> None:
        """Three seeds and three levels without a trend: all 216 orders are equally likely, so the rate is exact."""
        kinds = [
            verdict(np.array(orders, dtype=float).T[:, None], Rule("trend")).kind
            for orders in itertools.product(itertools.permutations((1, 2, 3)), repeat=3)
        ]
        assert 0 < kinds.count(SUPPORTED) / 216 <= 0.05
        assert kinds.count(CONTRADICTED) == kinds.count(SUPPORTED)


RATES = {"normal": (0.05, 0.05), "skewed": (0.05, 0.17), "failing": (0.05, 0.37)}
"""How often a verdict is wrong where nothing is there, at most, as docs/background/verdicts.md says.

First where both methods' runs are of this kind, then where those of one are and its rival's are steady.
"""


class TestMost:
    """The partial conjunction: of seven places three hold, three fail, and the fourth is at the edge."""

    @pytest.mark.parametrize("shared", [0.0, 2.0])
    @pytest.mark.parametrize("seeds", [3, 5, 10])
    @pytest.mark.parametrize("rivals", [1, 3])
    def test_error_rates(self, rivals: int, seeds: int, shared: float) -> None:
        rng = np.random.default_rng([rivals, seeds])
        values = rng.normal(size=(rivals, 7, DRAWS, seeds)) + shared * rng.normal(size=(DRAWS, seeds))
        values += 20 * np.array([1, 1, 1, 0, -1, -1, -1])[:, None, None]
        values[1:, 3] += 20  # one rival stands in the way
        for p in p_values(values, Rule("better", holds="most"))[:2]:
            assert (p <= 0.05).mean() <= 0.05 + slack(0.05)

    def test_nine_of_24_places_are_not_most_and_18_are(self) -> None:
        """By shares of places won, "most" was supported in 83 % of the first case and contradicted in the second."""
        rng = np.random.default_rng(0)
        for better, place in ((9, 0), (18, 1)):
            truth = np.where(np.arange(24) < better, 1.0, -0.05 if place == 0 else -1.0)
            values = 0.3 * rng.normal(size=(1, 24, 1000, 5)) + truth[:, None, None]
            rates = [(p <= 0.05).mean() for p in p_values(values, Rule("better", holds="most"))]
            assert rates[place] <= 0.05, "wrong"
            if place == 1:
                assert rates[0] >= 0.8, "it has power"


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("kind", RATES)
def test_error_rates_of_all_kinds_of_runs(kind: str, seeds: int) -> None:
    """One effect and an average: supported and contradicted where differences have mean 0."""
    rng = np.random.default_rng([seeds, len(kind)])
    for (name, steady), most in zip((("alike", 0.0), ("steady rival", 1.0)), RATES[kind], strict=True):
        rates = {}
        for holds, places in (("all", 1), ("average", 4)):
            mine, rival = (KINDS[kind](rng, (1, places, DRAWS, seeds)) for _ in range(2))
            effects = mine - (1 - steady) * rival
            for word, p in zip(
                ("supported", "contradicted"), p_values(effects, Rule("better", holds=holds)), strict=False
            ):  # type: ignore[arg-type]
                rates[f"{holds}, {word}"] = (p <= 0.05).mean()
        worst = max(rates, key=lambda case: rates[case])
        print(f"claims, {kind}, {name}, {seeds} seeds: at most {rates[worst]:.3f} ({worst})")
        assert rates[worst] <= most + slack(most)
