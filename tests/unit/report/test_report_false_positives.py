"""How often verdicts are wrong when nothing is there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedbench.report.numbers.verdicts import CONTRADICTED, SUPPORTED, Rule, decided, verdict


class TestFalsePositives:
    """10,000 draws without the effect claimed: supported at most as often as the level says (three sigma added)."""

    draws = 10_000
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
        supported = decided(values, Rule("better", holds=holds))[0] <= 0.05  # type: ignore[arg-type]
        assert supported.mean() <= self.most
        if (holds, components, places) == ("average", 1, 1) and seeds < 5:
            assert supported.mean() > 0.04, "the test is not merely deaf"

    @pytest.mark.parametrize("holds", ["all", "average", "some"])
    @pytest.mark.parametrize("seeds", [3, 5])
    def test_contradicted(self, holds: str, seeds: int) -> None:
        against = decided(self.noise(2, 3, seeds), Rule("better", holds=holds))[1] <= 0.05  # type: ignore[arg-type]
        assert against.mean() <= self.most

    @pytest.mark.parametrize("holds", ["all", "average", "some"])
    @pytest.mark.parametrize(("components", "places"), [(1, 1), (1, 6), (3, 4)])
    @pytest.mark.parametrize("seeds", [3, 5, 8])
    def test_not_supported(self, holds: str, components: int, places: int, seeds: int) -> None:
        """Every effect is just what matters: "smaller than that" is wrong."""
        rule = Rule("better", matters=1.5, holds=holds)  # type: ignore[arg-type]
        small = decided(self.noise(components, places, seeds, shared=0.5) + 1.5, rule)[2] <= 0.05
        assert small.mean() <= self.most
        if (holds, components, places, seeds) == ("average", 1, 1, 3):
            assert small.mean() > 0.04, "the test is not merely deaf"

    @pytest.mark.parametrize("form", ["no_worse", "equal"])
    @pytest.mark.parametrize("seeds", [3, 5])
    def test_margins(self, form: str, seeds: int) -> None:
        values = self.noise(1, 1, seeds) - 1.5
        rule = Rule(form, margin=1.5)  # type: ignore[arg-type]
        supported, against, _ = decided(values, rule)
        assert (supported <= 0.05).mean() <= self.most
        assert (against <= 0.05).mean() <= self.most

    def test_most(self) -> None:
        values = self.noise(1, 4, 5, shared=0.5)
        rule = Rule("better", holds="most")
        wins = sum(float(decided(values[:, :, i], rule)[0]) <= 0.05 for i in range(self.draws))
        assert wins / self.draws <= self.most

    def test_trend_over_all_orders(self) -> None:
        """Three seeds and three levels without a trend: all 216 orders are equally likely, so the rate is exact."""
        kinds = [
            verdict(np.array(orders, dtype=float).T[:, None], Rule("trend")).kind
            for orders in itertools.product(itertools.permutations((1, 2, 3)), repeat=3)
        ]
        assert 0 < kinds.count(SUPPORTED) / 216 <= 0.05
        assert kinds.count(CONTRADICTED) == kinds.count(SUPPORTED)
