"""A table's shape and what is said of its numbers, as functions of literal frames."""

from __future__ import annotations

import math

import pandas as pd

from fedbench.plan.schema import TableSpec
from fedbench.report.tables import sentences
from fedbench.report.tables.fold import fold
from fedbench.report.tables.layout import Entry, Grid, Marks, arranged, listed

SPEC = TableSpec(
    title="T", datasets=["A", "B"], rows=["dataset", "method"], columns=["p"], metrics=["auc", "ap"]
)
AXES = {"dataset": ["A", "B"], "method": ["x", "y"], "p": [4, 8], "metric": ["auc", "ap"]}


def table(*said: tuple[str, str, int, str, str]) -> Grid:
    """A table with these values at dataset, method, p and metric."""
    places = [dict(zip(AXES, place, strict=True)) for *place, _ in said]
    entries = [(place, Entry(value), "1.00") for place, (*_, value) in zip(places, said, strict=True)]
    return Grid("method", arranged(SPEC, AXES, entries, lambda axis, value: f"{axis} {value}"), taus="column")


def test_rows_and_columns_are_as_named_and_gaps_are_blank() -> None:
    grid = table(("B", "x", 8, "ap", "0.1"), ("A", "y", 4, "auc", "0.2"), ("A", "x", 8, "auc", "0.3"))
    assert grid.headers == [[("p 4", 1), ("p 8", 1)]] and grid.names == ["p 4", "p 8"]
    shown = {
        (block.heading, row.label): [[entry.value for entry in line] for line in row.entries]
        for block in grid.blocks
        for row in block.rows
    }
    assert shown == {
        ("dataset A", "method x"): [["", "0.3"], ["", ""]],
        ("dataset A", "method y"): [["0.2", ""], ["", ""]],
        ("dataset B", "method x"): [["", ""], ["", "0.1"]],
    }
    assert [block.agreement for block in grid.blocks] == [["1.00", "1.00"], []], "of the first metric"


def test_what_did_not_run_is_left_out_and_counted() -> None:
    said = [
        ("A", "x", 4, "auc", "0.2"),
        ("A", "x", 8, "auc", "–"),
        ("B", "x", 4, "auc", "–"),
        ("B", "y", 8, "auc", "–"),
    ]
    folded = fold(table(*said))
    assert [block.heading for block in folded.blocks] == ["dataset A"] and folded.names == ["p 4"]
    assert folded.left == "Not run: dataset B, p 8 (3 of 4 numbers)."
    alone = fold(listed(["n"], [("", "x", [Entry("1")]), ("", "y", [Entry("–")])], "Dataset", "Not prepared"))
    assert [row.label for row in alone.rows] == ["x"] and alone.left == "Not prepared: y (1 of 2 numbers)."


def test_a_second_metric_is_in_parentheses_in_every_form() -> None:
    marks = Marks(str, "<{}>".format, str)
    entry = Entry(
        "0.5", "±0.1", best=True, printed="0.4", doubtful=True, delta="+0.1", symbol="≈", second=True
    )
    assert entry.sides(marks) == ("(<0.5>±0.1)", "(0.4)†", "+0.1", "≈")
    assert entry.sides(marks, spread=False)[0] == "(<0.5>)" and entry.deviation == "(0.1)"
    assert Entry("diverged 1/3", second=True).sides(marks)[0] == "diverged 1/3"


def numbers(**columns: list[object]) -> pd.DataFrame:
    """The frame of some numbers; what is not named is that of a finished one."""
    count = len(next(iter(columns.values())))
    usual = {"where": "", "method": "x", "shown": True, "here": True, "status": "finished", "reason": "",
             "kind": "matches", "said": "matches", "printed": 0.9, "matters": 0.01, "moving": ""}  # fmt: skip
    return pd.DataFrame({name: [value] * count for name, value in usual.items()} | columns)


def test_verdicts_are_counted_apart_for_the_proposed_method() -> None:
    frame = numbers(method=["x", "y", "y", "z"], said=["matches", "above print", "matches", "matches"])
    frame["printed"] = [0.9, 0.8, 0.7, math.nan]
    assert sentences.score(frame, ["x"], str.upper) == "Verdicts: X 1 match; rivals 1 match, 1 above."
    assert sentences.score(frame, [], str.upper) == "Verdicts: 2 match, 1 above."


def test_a_place_is_named_once_and_one_of_its_own_has_no_name() -> None:
    frame = numbers(status=["diverged"] * 3, where=["A", "A", ""], reason=["nan", "nan", "inf"])
    assert sentences.trouble(frame, "diverged") == "Diverged: A: nan. inf."
    assert sentences.trouble(frame, "failed") == ""


def test_only_what_changes_by_more_than_matters_is_still_changing() -> None:
    frame = numbers(
        pace=[0.03, -0.02, 0.001, math.nan], moving=["+0.030", "−0.020", "", ""], where=list("abcd")
    )
    frame["known_mean"] = 0.9
    assert sentences.moving(frame).startswith("2 of 3 results were still changing")
    assert sentences.moved(frame) == "Still changing: a: +0.030. b: −0.020."
    assert sentences.moved(frame.assign(pace=[0.02, -0.03, 0.001, 0.0])).startswith("Still changing: b")


def test_a_sign_is_explained_where_it_occurs() -> None:
    row = {"compares": True, "kind": "matches", "shipped": False, "partly": False, "again": False, "n_seeds": 3,
           "method": "x", "basis": "", "doubt": "", "status": "finished"}  # fmt: skip
    frame = pd.DataFrame([row])
    assert sentences.signs(frame, 0.01, dashes=False) == "≈ matches (tolerance ±0.01)."
    for mark, change in {"¹: one seed": {"basis": "one seed"}, "†": {"doubt": "typo"}}.items():
        assert mark in sentences.signs(frame.assign(**change), 0.01, dashes=False)
    left_out = frame.assign(doubt="typo", status="not run")
    assert "†" not in sentences.signs(left_out, 0.01, dashes=False)
    assert "†" in sentences.signs(left_out, 0.01, dashes=True)
