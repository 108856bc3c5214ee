"""Reference points: the test on literal numbers, and the shipped runs under the keys of today."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedbench.commands.check import Point, check, compared
from fedbench.errors import UserError
from fedbench.plan.schema import Config

ROOT = Path(__file__).parents[3]
REFERENCE = dict(enumerate([0.93, 0.94, 0.92, 0.935, 0.925, 0.93, 0.945, 0.915, 0.94, 0.92]))


def moved(by: float, seeds: int = 5) -> dict[int, float]:
    return {seed: REFERENCE[seed] + by for seed in range(seeds)}


def test_the_same_numbers_converge_like_ours() -> None:
    lines, good = compared([Point("A", moved(0.0), REFERENCE), Point("B", moved(0.002), REFERENCE)])
    assert good and lines[-1] == "converges like ours"
    assert "A: like ours" in lines[0] and "5 of 5 seeds equal" in lines[0] and "0 of 5 seeds" in lines[1]


def test_a_clear_loss_is_found_and_a_gain_is_none() -> None:
    lines, good = compared([Point("A", moved(-0.05), REFERENCE), Point("B", moved(0.05), REFERENCE)])
    assert not good and "A: worse" in lines[0] and "B: like ours" in lines[1]
    assert lines[-1] == "does not converge like ours"


def test_the_test_is_welchs_one_sided_and_corrected() -> None:
    point = Point("A", moved(-0.0105), REFERENCE)
    values = list(moved(-0.0105).values()), list(REFERENCE.values())
    assert point.p == pytest.approx(stats.ttest_ind(*values, equal_var=False, alternative="less").pvalue)
    assert 0.017 < point.p < 0.05 and not compared([point])[1]
    assert compared([point, *[Point(name, moved(0), REFERENCE) for name in "BC"]])[1], "one of three"


def test_a_run_that_diverged_is_worse() -> None:
    assert not compared([Point("A", {**moved(0.0), 1: math.nan}, REFERENCE)])[1]


def test_the_detectable_loss_is_found_four_times_in_five() -> None:
    rng, sd = np.random.default_rng(0), float(np.std(list(REFERENCE.values()), ddof=1))
    loss, result = Point("A", moved(0.0), REFERENCE).detectable, 0
    for _ in range(1000):
        local = dict(enumerate(rng.normal(0.93 - loss, sd, 5)))
        elsewhere = dict(enumerate(rng.normal(0.93, sd, 10)))
        result += Point("A", local, elsewhere).p <= 0.05
    assert 0.7 < result / 1000 < 0.88


def test_the_shipped_runs_fit_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trained here: each run gives back the number of its seed, another algorithm a bad one."""
    monkeypatch.chdir(ROOT)
    asked = []

    def train(spec: Any, *_: object) -> SimpleNamespace:
        asked.append(spec)
        value = 0.5 if spec.method == "untrained" else 0.9
        return SimpleNamespace(status="finished", metrics={"test_auc": value + 0.001 * spec.seed})

    monkeypatch.setattr("fedbench.commands.check.train_run", train)
    points = list(check(Config(device="cpu"), [], 3))
    assert [point.name for point in points] == ["FedAvg", "CODA+", "LocalSCGDAM"]
    assert all(len(point.reference) == 10 and min(point.reference.values()) > 0.85 for point in points)
    assert len(asked) == 9 and {spec.seed for spec in asked} == {0, 1, 2}
    (other,) = check(Config(device="cpu"), ["FedAvg=untrained"], 3)
    assert other.name == "FedAvg as untrained" and not compared([other])[1]
    with pytest.raises(UserError, match="Did you mean 'FedAvg'"):
        list(check(Config(device="cpu"), ["FedAvgg"], 3))
    with pytest.raises(UserError, match="1 seed is no sample"):
        list(check(Config(device="cpu"), [], 1))
