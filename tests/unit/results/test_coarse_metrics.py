"""How often verdicts are wrong on a metric of few steps: an accuracy on 36 or 360 test samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from error_draws import DRAWS, slack
from scipy import stats

from fedbench.results.claims.rules import Rule, p_values
from fedbench.results.statistics import OF_STEP
from fedbench.results.verdicts import ABOVE, BELOW, MATCHES, hold_against_print

Array = np.ndarray
RULES = (Path(__file__).parents[3] / "docs/background/verdicts.md").read_text(encoding="utf-8")
SEEDS = (3, 5, 10)
TOLERANCE = 0.01
RIVALS = 17
RATES = {
    (36, "verdict"): (0.09, 0.09, 0.08), (360, "verdict"): (0.07, 0.07, 0.08),
    (36, "claim"): (0.06, 0.06, 0.06), (360, "claim"): (0.06, 0.06, 0.06),
    (36, "steady"): (0.10, 0.08, 0.12), (360, "steady"): (0.06, 0.07, 0.07),
    (36, "rivals"): (0.05, 0.05, 0.05), (360, "rivals"): (0.05, 0.05, 0.05),
}  # fmt: skip
"""How often a verdict is wrong at most, by seeds, as docs/background/verdicts.md says."""


class Runs:
    """Exchangeable runs: right answers as they fall, or a number of them that hardly spreads, rounded."""

    def __init__(self, samples: int, share: float = 0.0, spread: float = 0.0, phase: float = 0.0) -> None:
        self.samples, self.share, self.spread, self.phase = samples, share, spread, phase

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        if self.share:
            return rng.binomial(self.samples, self.share, size=shape) / self.samples
        return np.round(self.phase + self.spread * rng.standard_normal(shape)) / self.samples

    @property
    def mean(self) -> float:
        if self.share:
            return self.share
        edges = np.arange(-30, 31) + 0.5
        chances = np.diff(stats.norm.cdf(edges, self.phase, self.spread))
        return float(chances @ (edges[:-1] + 0.5)) / self.samples


CASES_OF_PAGE = {
    "a verdict against a published value": "verdict",
    "a claim, both": "claim",
    "a claim, one method's": "steady",
    "a claim against 17 rivals": "rivals",
}


def kinds(samples: int) -> list[Runs]:
    spreads = [(spread, phase) for spread in (0.1, 0.3, 0.5, 1.0, 2.0) for phase in (0.0, 0.2, 0.4)]
    return [
        *(Runs(samples, share=share) for share in (0.5, 0.9, 0.95, 0.97, 0.99)),
        *(Runs(samples, spread=spread, phase=phase) for spread, phase in spreads),
    ]


def verdict_rate(rng: np.random.Generator, runs: Runs, seeds: int, least: float) -> float:
    """A verdict beside print where the expectations differ by the tolerance, or by nothing."""
    ours, printed = runs.draw(rng, (DRAWS, seeds)), runs.draw(rng, (DRAWS,))
    spread, rates = np.maximum(ours.std(1, ddof=1), least), []
    for shift in (TOLERANCE, -TOLERANCE, 0.0):
        said = hold_against_print(ours.mean(1) + shift, spread, seeds, printed, TOLERANCE).kind
        rates += [np.isin(said, (ABOVE, BELOW)).mean(), (said == MATCHES).mean() * (shift != 0)]
    return float(max(rates))


def claim_rate(effects: Array, least: float) -> float:
    """A claim supported or contradicted that has effects of mean 0 [components, places, draws, seeds]."""
    supported, contradicted, _ = p_values(effects, Rule("better", holds="all", least=least))
    return float(max((supported <= 0.05).mean(), (contradicted <= 0.05).mean()))


def pair_rate(rng: np.random.Generator, runs: Runs, seeds: int, least: float) -> float:
    mine, rival = (runs.draw(rng, (1, 1, DRAWS, seeds)) for _ in range(2))
    return claim_rate(mine - rival, least)


def steady_rate(rng: np.random.Generator, runs: Runs, seeds: int, least: float) -> float:
    return claim_rate(runs.draw(rng, (1, 1, DRAWS, seeds)) - runs.mean, least)


def rivals_rate(rng: np.random.Generator, runs: Runs, seeds: int, least: float) -> float:
    mine, rivals = (runs.draw(rng, (number, 1, DRAWS, seeds)) for number in (1, RIVALS))
    return claim_rate(mine - rivals, least)


CASES: dict[str, Callable[[np.random.Generator, Runs, int, float], float]] = {
    "verdict": verdict_rate, "claim": pair_rate, "steady": steady_rate, "rivals": rivals_rate,
}  # fmt: skip


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("samples", [36, 360])
@pytest.mark.parametrize("case", CASES)
def test_rates_of_a_coarse_metric(case: str, samples: int, seeds: int) -> None:
    rng = np.random.default_rng([samples, seeds])
    rates = {kind: CASES[case](rng, kind, seeds, OF_STEP / samples) for kind in kinds(samples)}
    worst = max(rates, key=lambda kind: rates[kind])
    print(f"{case}, {samples} samples, {seeds} seeds: at most {rates[worst]:.4f} ({vars(worst)})")
    most = RATES[samples, case][SEEDS.index(seeds)] + 0.005
    assert rates[worst] <= most + slack(most)


@pytest.mark.parametrize("case", ["verdict", "steady", "rivals"])
def test_without_the_least_spread_they_are_wrong_more_often(case: str) -> None:
    """Equal differences that are not zero passed any correction, and runs that never differ any tolerance."""
    kind = Runs(36, spread=0.3 if case == "rivals" else 0.1, phase=0.4)
    rate = CASES[case](np.random.default_rng(0), kind, 3, 0.0)
    assert rate > 1.5 * RATES[36, case][0]


def test_the_page_says_the_rates() -> None:
    page = RULES[RULES.index("36 test samples |") :].split("\n\n")[0]
    rows = {row.split("|")[1].strip(): row.split("|")[2:-1] for row in page.split("\n")[2:]}
    assert len(rows) == len(CASES)
    for words, case in CASES_OF_PAGE.items():
        (cells,) = (cells for row, cells in rows.items() if row.startswith(words))
        for samples, cell in zip((36, 360), cells, strict=True):
            assert cell.strip() == ", ".join(f"{100 * rate:.0f}" for rate in RATES[samples, case]), (
                words,
                samples,
            )
