"""What a claim compares: effects read from numbers written down here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fedbench.measures import measure
from fedbench.plan.claims import ClaimSpec
from fedbench.report.numbers.effects import MEAN, Effects, Needs, Place, Values, effects, rule_of
from fedbench.results.claims.judge import Rule, verdict

AUC, COST = measure("test_auc"), measure("test_loss")
METHODS = ["A", "B", "C-x"]


class Book:
    """Numbers by dataset, p, and method: seeds in a list."""

    def __init__(self, numbers: Mapping[tuple[str, int, str], Values | list[float]]) -> None:
        self.numbers = numbers

    def end(self, place: Place, method: str, metric: str) -> Values:
        """The number of each seed."""
        at = dict(place)
        found = self.numbers.get((str(at["dataset"]), int(at["p"]), method), {})
        return dict(enumerate(found)) if isinstance(found, list) else found

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """A curve that was half as good on average."""
        return {seed: value / 2 for seed, value in self.end(place, method, metric).items()}

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Rounds that grow as the end falls; below the target, none."""
        found = self.end(place, method, metric).items()
        return {seed: (100 / value if value >= target else math.inf, 1000.0) for seed, value in found}


def read(book: Book, places: list[tuple[str, int]], which: Any = AUC, **claim: Any) -> Effects:
    """The effects of a claim on a table with two axes."""
    spec = ClaimSpec.model_validate({"says": "x", "in": "table1", **claim})
    return effects(spec, which, [(("dataset", d), ("p", p)) for d, p in places], METHODS, book)


TWO = [("D", 4), ("E", 4)]
BOOK = Book(
    {
        ("D", 4, "A"): [0.9, 0.8], ("D", 4, "B"): [0.7, 0.7], ("D", 4, "C-x"): [0.85, 0.6],
        ("E", 4, "A"): [0.5], ("E", 4, "B"): [0.6, 0.7],
        ("D", 8, "A"): [0.6, 0.5], ("D", 8, "B"): [0.2, 0.1],
    }
)  # fmt: skip


def test_rivals_are_components_and_missing_seeds_are_nan() -> None:
    found = read(BOOK, TWO, better={"method": "A", "than": ["B", "C-x"], "metric": "test_auc"})
    assert [dict(place)["dataset"] for place in found.places] == ["D", "E"] and found.seeds == [0, 1]
    expected = [[[0.2, 0.1], [-0.1, np.nan]], [[0.05, 0.2], [np.nan, np.nan]]]
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


def test_lower_is_better_turns_the_sign() -> None:
    found = read(BOOK, TWO[:1], COST, better={"method": "A", "than": "B", "metric": "test_loss"})
    np.testing.assert_allclose(found.values, [[[-0.2, -0.1]]])


def test_several_methods_a_number_and_the_mean_of_the_curve() -> None:
    both = read(BOOK, TWO[:1], better={"method": ["A", "C-x"], "than": "B", "metric": "test_auc"})
    np.testing.assert_allclose(both.values, [[[0.2, 0.1]], [[0.15, -0.1]]], atol=1e-12)
    bound = read(BOOK, TWO[:1], better={"method": "A", "than": 0.5, "metric": "test_auc"})
    np.testing.assert_allclose(bound.values, [[[0.4, 0.3]]])
    curve = read(BOOK, TWO[:1], better={"method": "A", "than": "B", "metric": "test_auc", "over": "curve"})
    np.testing.assert_allclose(curve.values, [[[0.1, 0.05]]])


def test_only_narrows_and_settings_compare_within_a_method() -> None:
    places = [("D", 4), ("D", 8), ("E", 4)]
    better = {"method": "A", "than": "B", "metric": "test_auc"}
    assert [dict(p)["p"] for p in read(BOOK, places, better=better, only={"p": 8}).places] == [8]
    assert len(read(BOOK, places, better=better, only={"dataset": ["D"]}).places) == 2
    same = {"method": "A", "when": {"p": 8}, "than": {"p": 4}, "metric": "test_auc", "margin": 0.01}
    found = read(BOOK, places[:2], no_worse=same)
    assert found.places == [(("dataset", "D"),)]
    np.testing.assert_allclose(found.values, [[[-0.3, -0.3]]])


def test_changes_are_compared() -> None:
    """From p = 4 to 8 A loses .3 and .3, B .5 and .6: A loses .2 and .3 less."""
    change = {"method": "A", "than": "B", "metric": "test_auc", "change": {"p": [4, 8]}}
    found = read(BOOK, [("D", 4), ("D", 8)], better=change)
    np.testing.assert_allclose(found.values, [[[0.2, 0.3]]])


def test_a_trend_has_levels_in_order_and_may_be_that_of_a_gap() -> None:
    places = [("D", 8), ("D", 4)]
    found = read(BOOK, places, trend={"method": "A", "metric": "test_auc", "along": "p"})
    np.testing.assert_allclose(found.values, [[[0.9, 0.8]], [[0.6, 0.5]]])
    falls = read(BOOK, places, trend={"method": "A", "metric": "test_auc", "along": "p", "falls": True})
    np.testing.assert_allclose(falls.values, found.values[::-1])
    gap = read(BOOK, places[1:], trend={"gap": ["A", "best_other"], "metric": "test_auc", "along": "p"})
    np.testing.assert_allclose(gap.values, [[[0.05, 0.1]]], atol=1e-12)


def test_ratios_of_needs_bound_a_miss() -> None:
    """A needs 111 and 125 rounds, C-x 118 and, in a thousand, none."""
    ratio = {"method": "C-x", "than": "A", "needs": "round", "to": {"test_auc": 0.7}, "at_least": 1}
    low, high = read(BOOK, TWO[:1], ratio=ratio).values
    assert low[0] == pytest.approx([math.log(0.9 / 0.85), math.log(1000 / 125)])
    assert high[0] == pytest.approx([math.log(0.9 / 0.85), math.inf])
    most = {**ratio, "at_least": None, "at_most": 2}
    turned = read(BOOK, TWO[:1], ratio=most)
    np.testing.assert_allclose(turned.values[1], -low)
    spec = ClaimSpec.model_validate({"says": "x", "in": "t", "ratio": most})
    assert rule_of(spec, AUC).margin == pytest.approx(-math.log(2))


def test_the_largest_setting_that_costs_nothing() -> None:
    numbers = {("D", p, "A"): [value] for p, value in ((1, 0.9), (4, 0.899), (8, 0.7), (16, 0.9))}
    numbers |= {("D", p, "B"): [value] for p, value in ((1, 0.9), (4, 0.8), (8, 0.8), (16, 0.8))}
    places = [("D", p) for p in (1, 4, 8, 16)]
    ratio = {
        "method": "A",
        "than": "B",
        "largest": "p",
        "within": 0.005,
        "of": 1,
        "metric": "test_auc",
        "at_least": 4,
    }
    found = read(Book(numbers), places, ratio=ratio)
    np.testing.assert_allclose(
        found.values, [[[math.log(4)]], [[math.log(4)]]]
    )  # 4 against 1: 16 came after a loss
    del numbers["D", 16, "B"]  # B has lost before
    assert np.isfinite(read(Book(numbers), places, ratio=ratio).values).all()
    del numbers["D", 8, "A"]  # A may reach 8 or not
    assert read(Book(numbers), places, ratio=ratio).values.size == 0


def test_somewhere_the_others_are_low_and_the_method_is_high() -> None:
    """The best of B and C-x has .85 and .7: the limit .8 is .05 too low, then .1 above; A is .4 and .3 above .5."""
    claim = {"method": "A", "above": 0.5, "others_below": 0.8, "metric": "test_auc"}
    found = read(BOOK, TWO[:1], exists=claim)
    np.testing.assert_allclose(found.values, [[[0.8 - 0.85, 0.8 - 0.7]], [[0.4, 0.3]]], atol=1e-12)


def test_a_run_that_diverged_is_lost_or_won() -> None:
    inf = math.inf
    book = Book({("D", 4, "A"): [0.9, -inf, 0.8, -inf], ("D", 4, "B"): [0.8, 0.7, -inf, -inf]})
    found = read(book, TWO[:1], better={"method": "A", "than": "B", "metric": "test_auc"})
    np.testing.assert_allclose(found.values, [[[0.1, -inf, inf, -inf]]])
    steps = {("D", 4, "A"): [0.9], ("D", 8, "A"): [-inf], ("D", 4, "B"): [-inf], ("D", 8, "B"): [0.9]}
    change = {"method": "A", "than": "B", "metric": "test_auc", "change": {"p": [4, 8]}}
    assert read(Book(steps), [("D", 4), ("D", 8)], better=change).values == -inf, "it lost what it had"


def test_components_say_whom_they_compare_with() -> None:
    def against(method: str | list[str], than: str | list[str]) -> list[str]:
        return read(BOOK, TWO[:1], better={"method": method, "than": than, "metric": "test_auc"}).against

    assert against("A", ["B", "C-x"]) == ["B", "C-x"]
    assert against(["A", "B"], "C-x") == ["A over C-x", "B over C-x"]
    assert against("A", "B") == []


def test_means_alone_are_one_block() -> None:
    book = Book(
        {("D", 4, "A"): {MEAN: 0.9}, ("D", 4, "B"): [0.5, 0.7], ("E", 4, "A"): [0.5], ("E", 4, "B"): [0.6]}
    )
    found = read(book, TWO, better={"method": "A", "than": "B", "metric": "test_auc"})
    assert found.seeds == [MEAN]
    np.testing.assert_allclose(found.values, [[[0.3], [-0.1]]])


def test_seeds_that_two_methods_do_not_share_are_not_compared() -> None:
    """Partitions and batches differ by seed, so that the difference would be theirs too."""
    book = Book(
        {("D", 4, "A"): {1: 0.9}, ("D", 4, "B"): {0: 0.5}, ("E", 4, "A"): [0.5], ("E", 4, "B"): [0.6]}
    )
    found = read(book, TWO, better={"method": "A", "than": "B", "metric": "test_auc"})
    assert found.seeds == [0]
    np.testing.assert_allclose(found.values, [[[math.nan], [-0.1]]])


def test_a_place_with_means_only_waits_where_another_has_three_seeds() -> None:
    numbers: dict[Any, Any] = {("D", 4, "A"): {MEAN: 0.9}, ("D", 4, "B"): [0.5, 0.7, 0.6]}
    numbers |= {("E", 4, "A"): [0.7, 0.7, 0.8], ("E", 4, "B"): [0.6, 0.6, 0.6]}
    claim = {"method": "A", "than": "B", "metric": "test_auc"}
    found = read(Book(numbers), TWO, better=claim)
    assert found.seeds == [0, 1, 2, MEAN] and np.isfinite(found.values).any(-1).all(), "both ran"
    alone = read(Book({at: numbers[at] for at in numbers if at[0] == "E"}), TWO[1:], better=claim)
    rule = Rule("better", matters=0.005)
    assert verdict(found.values, rule) == verdict(alone.values, rule)
    assert verdict(found.values, rule).seeds == 3
    del numbers["E", 4, "A"][2]
    assert read(Book(numbers), TWO, better=claim).seeds == [MEAN], "two seeds decide nothing: all count alike"
