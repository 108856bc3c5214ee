"""What a claim compares: effects read from frames written down here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedbench.metric_table import measure
from fedbench.results.claims.claim_query import asked, rule_of
from fedbench.results.claims.effects import Effects, effects, log_ratio
from fedbench.results.places import Place, Pooled
from fedbench.study.claims import ClaimSpec

AUC, COST = measure("test_auc"), measure("test_loss")
METHODS = ["A", "B", "C-x"]
Book = Mapping[tuple[str, Any, str], list[float] | dict[int, float]]


def place(dataset: str, p: Any) -> Place:
    return (("dataset", dataset), ("p", p))


def frame(book: Book) -> pd.DataFrame:
    """A row for each dataset, p, method and seed; of each it tried a thousand."""
    rows = [
        {"place": place(dataset, p), "method": method, "seed": seed, "value": value, "tried": 1000.0}
        for (dataset, p, method), values in book.items()
        for seed, value in (enumerate(values) if isinstance(values, list) else values.items())
    ]
    return pd.DataFrame(rows, columns=["place", "method", "seed", "value", "tried"])


def read(book: Book, places: list[tuple[str, Any]], which: Any = AUC, **claim: Any) -> Effects:
    spec = ClaimSpec.model_validate({"says": "x", "in": "table1", **claim})
    return effects(spec, which, [place(*at) for at in places], METHODS, frame(book))


TWO = [("D", 4), ("E", 4)]
BOOK: Book = {
    ("D", 4, "A"): [0.9, 0.8], ("D", 4, "B"): [0.7, 0.7], ("D", 4, "C-x"): [0.85, 0.6],
    ("E", 4, "A"): [0.5], ("E", 4, "B"): [0.6, 0.7],
    ("D", 8, "A"): [0.6, 0.5], ("D", 8, "B"): [0.2, 0.1],
}  # fmt: skip


def test_rivals_are_components_and_missing_seeds_are_nan() -> None:
    compared = read(BOOK, TWO, better={"method": "A", "than": ["B", "C-x"], "metric": "test_auc"})
    assert [dict(place)["dataset"] for place in compared.places] == ["D", "E"] and compared.seeds == [0, 1]
    expected = [[[0.2, 0.1], [-0.1, np.nan]], [[0.05, 0.2], [np.nan, np.nan]]]
    np.testing.assert_allclose(compared.values, expected, atol=1e-12)


def test_another_method_may_stand_at_the_other_setting() -> None:
    asked_at = {"method": "A", "when": {"p": 4}, "than": {"p": 8}, "metric": "test_auc", "margin": 0.1}
    (itself,) = read(BOOK, [("D", 4), ("D", 8)], no_worse=asked_at).values
    np.testing.assert_allclose(itself, [[0.3, 0.3]], atol=1e-12)
    (other,) = read(BOOK, [("D", 4), ("D", 8)], no_worse=asked_at | {"rival": "B"}).values
    np.testing.assert_allclose(other, [[0.7, 0.7]], atol=1e-12)
    with pytest.raises(ValueError, match="rival"):
        read(BOOK, TWO, better={"method": "A", "than": "B", "rival": "B", "metric": "test_auc"})


def test_lower_is_better_turns_the_sign() -> None:
    compared = read(BOOK, TWO[:1], COST, better={"method": "A", "than": "B", "metric": "test_loss"})
    np.testing.assert_allclose(compared.values, [[[-0.2, -0.1]]])


def test_several_methods_and_a_number() -> None:
    both = read(BOOK, TWO[:1], better={"method": ["A", "C-x"], "than": "B", "metric": "test_auc"})
    np.testing.assert_allclose(both.values, [[[0.2, 0.1]], [[0.15, -0.1]]], atol=1e-12)
    bound = read(BOOK, TWO[:1], better={"method": "A", "than": 0.5, "metric": "test_auc"})
    np.testing.assert_allclose(bound.values, [[[0.4, 0.3]]])


def test_only_narrows_and_settings_compare_within_a_method() -> None:
    places = [("D", 4), ("D", 8), ("E", 4)]
    better = {"method": "A", "than": "B", "metric": "test_auc"}
    assert [dict(at)["p"] for at in read(BOOK, places, better=better, only={"p": 8}).places] == [8]
    assert len(read(BOOK, places, better=better, only={"dataset": ["D"]}).places) == 2
    same = {"method": "A", "when": {"p": 8}, "than": {"p": 4}, "metric": "test_auc", "margin": 0.01}
    compared = read(BOOK, places[:2], no_worse=same)
    assert compared.places == [(("dataset", "D"),)]
    np.testing.assert_allclose(compared.values, [[[-0.3, -0.3]]])


def test_changes_are_compared() -> None:
    """From p = 4 to 8 A loses .3 and .3, B .5 and .6: A loses .2 and .3 less."""
    change = {"method": "A", "than": "B", "metric": "test_auc", "change": {"p": [4, 8]}}
    compared = read(BOOK, [("D", 4), ("D", 8)], better=change)
    np.testing.assert_allclose(compared.values, [[[0.2, 0.3]]])


def test_a_trend_has_levels_in_order_and_may_be_that_of_a_gap() -> None:
    places = [("D", 8), ("D", 4)]
    compared = read(BOOK, places, trend={"method": "A", "metric": "test_auc", "along": "p"})
    np.testing.assert_allclose(compared.values, [[[0.9, 0.8]], [[0.6, 0.5]]])
    falls = read(BOOK, places, trend={"method": "A", "metric": "test_auc", "along": "p", "falls": True})
    np.testing.assert_allclose(falls.values, compared.values[::-1])
    gap = read(BOOK, places[1:], trend={"gap": ["A", "best_other"], "metric": "test_auc", "along": "p"})
    np.testing.assert_allclose(gap.values, [[[0.05, 0.1]]], atol=1e-12)


BETTER = {"method": "A", "than": "B", "metric": "test_auc"}
TREND = {"method": "A", "metric": "test_auc", "along": "p"}
RATIO = {"method": "A", "than": "B", "needs": "round", "at_most": 1}


@pytest.mark.parametrize(
    ("form", "content", "metric"),
    [
        ("better", BETTER, "test_auc"),
        ("better", BETTER | {"over": "curve"}, "curve_mean_test_auc"),
        ("trend", TREND | {"over": "end"}, "test_auc"),
        ("trend", TREND | {"over": "curve"}, "curve_mean_test_auc"),
        ("ratio", RATIO, "round"),
        ("ratio", RATIO | {"to": {"test_auc": 0.7}}, "rounds_to_test_auc_0.7"),
    ],
)
def test_the_metric_that_is_asked_for(form: str, content: dict[str, Any], metric: str) -> None:
    assert asked(ClaimSpec.model_validate({"says": "x", "in": "t", form: content})) == metric


def test_ratios_of_costs_bound_a_miss() -> None:
    """A needs 111 and 125 rounds, C-x 118 and, in a thousand, none."""
    rounds = {("D", 4, "A"): [100 / 0.9, 100 / 0.8], ("D", 4, "C-x"): [100 / 0.85, math.inf]}
    ratio = {"method": "C-x", "than": "A", "needs": "round", "to": {"test_auc": 0.7}, "at_least": 1}
    low, high = read(rounds, TWO[:1], ratio=ratio).values
    assert low[0] == pytest.approx([math.log(0.9 / 0.85), math.log(1000 / 125)])
    assert high[0] == pytest.approx([math.log(0.9 / 0.85), math.inf])
    most = {**ratio, "at_least": None, "at_most": 2}
    turned = read(rounds, TWO[:1], ratio=most)
    np.testing.assert_allclose(turned.values[1], -low)
    spec = ClaimSpec.model_validate({"says": "x", "in": "t", "ratio": most})
    assert rule_of(spec, AUC).margin == pytest.approx(-math.log(2))
    spent = {"method": "C-x", "than": "A", "needs": "round", "at_least": 1}
    assert np.isnan(read({**rounds, ("D", 4, "A"): [0.0, 125]}, TWO[:1], ratio=spent).values).all(), "no cost"


@pytest.mark.parametrize(
    ("sides", "bounds"),
    [
        ((8, 4, math.nan, math.nan), (math.log(2), math.log(2))),
        ((math.inf, 4, 16, 4), (math.log(4), math.inf)),
        ((math.inf, 4, math.nan, 4), (-math.inf, math.inf)),  # not reached, nobody knows within how much
        ((8, math.inf, 8, math.nan), (-math.inf, math.inf)),
        ((math.inf, 4, math.inf, 4), (math.inf, math.inf)),  # diverged: lost
        ((8, math.inf, 8, math.inf), (-math.inf, -math.inf)),
        ((0, 4, 0, 4), (-math.inf, -math.inf)),  # it costs nothing: lost, won, equal
        ((4, 0, 4, 0), (math.inf, math.inf)),
        ((0, 0, 8, 8), (0, 0)),
        ((math.inf, math.inf, math.inf, 16), (-math.inf, math.inf)),
    ],
)
def test_what_was_not_reached_bounds_a_ratio_by_what_was_tried(
    sides: tuple[float, float, float, float], bounds: tuple[float, float]
) -> None:
    assert log_ratio(*sides) == pytest.approx(bounds)


def test_the_largest_setting_that_costs_nothing() -> None:
    numbers: dict[Any, Any] = {
        ("D", p, "A"): [value] for p, value in ((1, 0.9), (4, 0.895), (8, 0.7), (16, 0.9))
    }  # 4 costs what it may, which is a hair more in binary
    numbers |= {("D", p, "B"): [value] for p, value in ((1, 0.9), (4, 0.8), (8, 0.8), (16, 0.8))}
    places = [("D", p) for p in (1, 4, 8, 16)]
    sides = {"method": "A", "than": "B", "metric": "test_auc"}
    ratio = sides | {"largest": "p", "within": 0.005, "of": 1, "at_least": 4}
    compared = read(numbers, places, ratio=ratio)
    # 4 against 1: 16 came after a loss
    np.testing.assert_allclose(compared.values, [[[math.log(4)]], [[math.log(4)]]])
    assert read(numbers, places[:2], ratio=ratio).values.tolist() == [[[math.log(4)]], [[math.inf]]], (
        "A has not lost"
    )
    del numbers["D", 16, "B"]  # B has lost before
    assert np.isfinite(read(numbers, places, ratio=ratio).values).all()
    del numbers["D", 8, "A"]  # A may reach 8 or not
    assert read(numbers, places, ratio=ratio).values.size == 0


def test_somewhere_the_others_are_low_and_the_method_is_high() -> None:
    """The best of B and C-x has .85 and .7: the limit .8 is .05 too low, then .1 above; A is .4 and .3 above .5."""
    claim = {"method": "A", "above": 0.5, "others_below": 0.8, "metric": "test_auc"}
    compared = read(BOOK, TWO[:1], exists=claim)
    np.testing.assert_allclose(compared.values, [[[0.8 - 0.85, 0.8 - 0.7]], [[0.4, 0.3]]], atol=1e-12)
    compared = read({**BOOK, ("D", 4, "C-x"): [0.85]}, TWO[:1], exists=claim)
    # C-x may be high in seed 1
    np.testing.assert_allclose(compared.values, [[[0.8 - 0.85]], [[0.4]]], atol=1e-12)


def test_somewhere_is_no_place_where_a_rival_has_yet_to_run() -> None:
    claim = ClaimSpec.model_validate({
        "says": "x", "in": "t", "exists": {"method": "A", "above": 0.5, "others_below": 0.1, "metric": "test_auc"},
    })  # fmt: skip
    at, book = place("D", 4), {("D", 4, "A"): [0.91], ("D", 4, "B"): [0.02]}

    def values(book: Book, cells: set[tuple[Place, str]]) -> Any:
        return effects(claim, AUC, [at], METHODS, frame(book), cells).values

    everyone = {(at, method) for method in METHODS}
    assert values(book, everyone).size == 0, "C-x may refute it"
    known = pytest.approx(np.array([[[0.08]], [[0.41]]]))
    assert values(book, everyone - {(at, "C-x")}) == known, "it has no cell"
    assert values(book, set()) == known, "it is print that cannot be read"
    assert values({**book, ("D", 4, "C-x"): [-math.inf]}, everyone) == known, "it diverged"


def test_a_run_that_diverged_is_lost_or_won() -> None:
    inf = math.inf
    book: Book = {("D", 4, "A"): [0.9, -inf, 0.8, -inf], ("D", 4, "B"): [0.8, 0.7, -inf, -inf]}
    compared = read(book, TWO[:1], better={"method": "A", "than": "B", "metric": "test_auc"})
    np.testing.assert_allclose(compared.values, [[[0.1, -inf, inf, -inf]]])
    losses = {at: [-value for value in values] for at, values in book.items() if isinstance(values, list)}
    turned = read(losses, TWO[:1], COST, better={"method": "A", "than": "B", "metric": "test_loss"})
    np.testing.assert_array_equal(turned.values, compared.values)
    steps = {("D", 4, "A"): [0.9], ("D", 8, "A"): [-inf], ("D", 4, "B"): [-inf], ("D", 8, "B"): [0.9]}
    change = {"method": "A", "than": "B", "metric": "test_auc", "change": {"p": [4, 8]}}
    assert read(steps, [("D", 4), ("D", 8)], better=change).values == -inf, "it lost what it had"


def test_components_say_whom_they_compare_with() -> None:
    def against(method: str | list[str], than: str | list[str]) -> list[str]:
        return read(BOOK, TWO[:1], better={"method": method, "than": than, "metric": "test_auc"}).against

    assert against("A", ["B", "C-x"]) == ["B", "C-x"]
    assert against(["A", "B"], "C-x") == ["A over C-x", "B over C-x"]
    assert against("A", "B") == []


def test_seeds_that_two_methods_do_not_share_are_not_compared() -> None:
    """Partitions and batches differ by seed, so that the difference would be theirs too."""
    book: Book = {
        ("D", 4, "A"): {1: 0.9}, ("D", 4, "B"): {0: 0.5}, ("E", 4, "A"): [0.5], ("E", 4, "B"): [0.6]
    }  # fmt: skip
    compared = read(book, TWO, better={"method": "A", "than": "B", "metric": "test_auc"})
    assert compared.seeds == [0]
    np.testing.assert_allclose(compared.values, [[[math.nan], [-0.1]]])


def test_a_pooled_place_is_the_mean_of_its_members_in_runs_and_one_number_in_print() -> None:
    pool = Pooled([1, 2])
    claim = {"method": "A", "than": "B", "metric": "test_auc"}
    runs = {("D", 1, "A"): [0.9, 0.8], ("D", 2, "A"): [0.7], ("D", 1, "B"): [0.5], ("D", 2, "B"): [0.7, 0.1]}
    compared = read(runs, [("D", pool)], better=claim)
    assert compared.seeds == [0], "seed 1 has not all members"
    np.testing.assert_allclose(compared.values, [[[0.2]]])
    both = read(
        {**runs, ("D", pool, "A"): [0.9], ("D", pool, "B"): [0.4]}, [("D", pool), ("D", 1)], better=claim
    )
    np.testing.assert_allclose(both.values, [[[0.5], [0.4]]])


def test_what_was_read_is_told() -> None:
    compared = read(
        BOOK, TWO, better={"method": "A", "than": "B", "metric": "test_auc"}, only={"dataset": "D"}
    )
    rows = compared.read
    assert rows.groupby("method")["value"].agg(list).to_dict() == {"A": [0.9, 0.8], "B": [0.7, 0.7]}
    assert rows["place"].unique().tolist() == [place("D", 4)]
