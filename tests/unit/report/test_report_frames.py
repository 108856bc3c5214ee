"""A table's shape and what is said of its numbers, as functions of literal frames."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd

from fedbench import metric_table
from fedbench.report import legend, notes
from fedbench.report.figures.panels import final_of
from fedbench.report.layout import Entry, Grid, arranged, fold, grid_of
from fedbench.report.results_table import layout, state_text
from fedbench.results.aggregate import key_of, measurements, summarised
from fedbench.results.claims.claim_query import numbers_of
from fedbench.results.frame import Measured, Row
from fedbench.results.leaderboard import Board, Line, _averaged, board_of
from fedbench.results.verdicts import judged
from fedbench.study.configuration import load_paper
from fedbench.study.schema import BoardSpec, TableSpec

SPEC = TableSpec(
    title="T", datasets=["A", "B"], rows=["dataset", "method"], columns=["p"], metrics=["auc", "ap"]
)
AXES = {"dataset": ["A", "B"], "method": ["x", "y"], "p": [4, 8], "metric": ["auc", "ap"]}


def table(*said: tuple[str, str, int, str, str]) -> Grid:
    """A table with these values at dataset, method, p and metric."""
    places = [dict(zip(AXES, place, strict=True)) for *place, _ in said]
    entries = [(place, Entry(value)) for place, (*_, value) in zip(places, said, strict=True)]
    return Grid("method", *arranged(SPEC, AXES, entries, "{} {}".format))


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


def test_what_did_not_run_is_left_out_and_counted() -> None:
    waiting = [(*place, "auc", "–") for place in (("A", "x", 8), ("A", "y", 4), ("B", "x", 4), ("B", "y", 8))]
    folded = fold(table(("A", "x", 4, "auc", "0.2"), *waiting))
    assert [block.heading for block in folded.blocks] == ["dataset A"] and folded.names == ["p 4"]
    assert folded.left == "Not run (3 of 5 numbers)."
    assert [row.label for row in folded.rows] == ["method x", "method y"], "beside a number a row stays"
    blank = fold(table(("A", "x", 4, "auc", "0.2")))
    assert blank.names == ["p 4"] and blank.left == "", "where no number belongs none is left out"
    alone = fold(grid_of(["n"], [("", "x", [Entry("1")]), ("", "y", [Entry("–")])], "Dataset"))
    assert [row.label for row in alone.rows] == ["x"] and alone.left == "Not run (1 of 2 numbers)."
    nothing = fold(grid_of(["n"], [("", "x", [Entry("–", printed="1")]), ("", "y", [Entry("–")])], "Dataset"))
    assert [row.label for row in nothing.rows] == ["x"] and nothing.left == "Not run (2 of 2 numbers)."


def numbers(**columns: list[object]) -> pd.DataFrame:
    """The frame of some numbers; what is not named is that of a finished one."""
    count = len(next(iter(columns.values())))
    usual = {"where": "", "method": "x", "shown": True, "of_scale": True, "status": "finished", "reason": "",
             "verdict": "matches", "basis": "", "printed": 0.9, "mean": 0.9, "matters": 0.01, "moving": ""}  # fmt: skip
    return pd.DataFrame({name: [value] * count for name, value in usual.items()} | columns)


def test_verdicts_are_counted_apart_for_the_proposed_method() -> None:
    methods = ["LocalSCGDAM", "CoDA", "CoDA", "LocalSGDM"]
    frame = numbers(method=methods, verdict=["matches", "above published", "matches", "matches"])
    frame = frame.assign(printed=[0.9, 0.8, 0.7, math.nan], difference=0.0)
    paper = load_paper("localscgdam")
    assert notes.outcome(paper, frame) == "Verdicts: LocalSCGDAM 1 match; rivals 1 above, 1 match."
    assert notes.outcome(paper, frame.query("method == 'CoDA'")) == "Verdicts: 1 above, 1 match."
    bounds = frame.assign(verdict="bound", printed=[0.9, 1.0, 0.8, 0.7])
    assert notes.outcome(paper, bounds) == "The paper gives bounds: 2 of 4 means lie within theirs."


def test_a_place_is_named_once_and_one_of_its_own_has_no_name() -> None:
    frame = numbers(status=["diverged"] * 3, where=["A", "A", ""], reason=["nan", "nan", "inf"])
    assert notes.trouble(frame, "diverged") == "Diverged: A: nan. inf."
    idle = numbers(where=["A", "B"], idle=[{"flat": [1, 2]}, {}])
    assert notes.idle_runs(idle, "flat").endswith("nothing was learned: A: seed 1, 2.")
    assert notes.trouble(frame, "failed") == ""
    assert notes.listed("x", map(str, range(8))) == "X: 0. 1. 2. 3. 4. 5. 6. 7."
    assert notes.listed("x", map(str, range(9))).endswith("7 … and 1 more, see the CSV.")


def test_only_what_changes_by_more_than_matters_is_still_changing() -> None:
    paces, said = [0.03, -0.02, 0.001, math.nan, 0.5], ["+0.030", "−0.020", "", "", ""]
    frame = numbers(pace=paces, moving=said, where=list("abcde"), matters=[0.01] * 4 + [0.0])
    assert notes.moving(frame).startswith("2 of 3 curves had not levelled off")
    assert "last fifth of training" in notes.moving(frame) and "step size" in notes.moving(frame, decays=True)


def test_a_sign_is_explained_where_it_occurs() -> None:
    row = {"difference": 0.001, "half_width": 0.002, "printed": 0.9, "verdict": "matches", "shipped": False,
           "n_seeds": 3, "n_wanted": 5, "method": "x", "basis": "", "doubt": "", "status": "finished",
           "on_edge": False, "shown": True, "low": math.nan, "trained": False}  # fmt: skip
    frame = pd.DataFrame([row])

    def said(frame: pd.DataFrame) -> str:
        return legend.signs(SPEC, frame, 0.01)

    assert said(frame).startswith("Δ = ours − published, with a 90 % interval. ≈: interval inside ±0.01;")
    assert said(frame).endswith("overlaps the limit.") and said(frame.assign(difference=math.nan)) == ""
    assert "interval" not in said(frame.assign(half_width=math.nan))
    for mark, change in {
        "¹: one seed": {"basis": "one seed"},
        "rackets: 90 % interval": {"low": 0.1},
        "°": {"on_edge": True},
    }.items():
        assert mark in said(frame.assign(**change)) and mark not in said(frame)
    for seeds in (0, 3):
        rivals = pd.concat([frame, frame.assign(method="y", n_seeds=seeds)])
        assert ("Bold: best in column, ours" in said(rivals)) == (seeds > 0), "one method has run"
    assert "separately" not in said(rivals.assign(printed=math.nan))
    shipped = frame.assign(shipped=True)
    assert "‡: reference results, 5 seeds." in said(shipped)
    assert "‡: (partly) reference results" in said(pd.concat([shipped, shipped.assign(trained=True)]))
    assert "results, 1 seed." in said(shipped.assign(n_wanted=1))
    several = pd.concat([shipped, shipped.assign(n_wanted=3), frame.assign(n_wanted=9)])
    assert "‡: reference results, 3 to 5 seeds." in said(several), "of shipped numbers alone"
    partial = pd.concat([shipped, shipped.assign(status="incomplete")])
    assert "results, 3 to 5 seeds." in said(partial), "with 3 of 5 those that there are"
    by_metric = SPEC.model_copy(update={"rows": ["dataset", "method", "metric"]})
    assert "best in column, metric by metric" in legend.signs(by_metric, rivals, 0.01)
    assert said(frame.assign(difference=math.nan, low=0.1)).startswith("In brackets")


def test_the_runs_behind_a_printed_spread_are_counted_in_order() -> None:
    frame = pd.DataFrame(
        {"difference": 0.1, "printed_std": [0.1, 0.1, math.nan], "comparable_std": [0.1, 0.1, math.nan],
         "spread": "std", "print_seeds": [10.0, 3.0, 10.0]}
    )  # fmt: skip
    rule = "in intervals a published number counts as"
    assert legend.published(frame) == (
        f"Published with no spread; {rule} 10 runs without a spread. "
        f"Published with standard deviation over runs; {rule} 3 runs or 10 runs with this spread."
    ), "what some rows print is not said of all"
    unsaid = frame[:1].assign(print_seeds=math.nan)
    assert legend.published(unsaid).endswith("counts as 2 runs with this spread."), "as intervals take it"
    mixed = frame.assign(spread=["std", "device variance", ""], print_seeds=math.nan, comparable_std=math.nan)
    kinds = "device variance", "no spread", "standard deviation over runs"
    assert legend.published(mixed) == " ".join(
        f"Published with {kind}; {rule} 1 run without a spread." for kind in kinds
    )
    assert legend.published(frame.assign(difference=math.nan)) == ""


def compared(**columns: list[object]) -> pd.DataFrame:
    """The frame of a table that holds four methods at one place against print, with verdicts and order."""
    usual = {
        "place": (("dataset", "FashionMNIST"), ("p", 4)), "dataset": "FashionMNIST", "metric": "test_auc",
        "label": "test AUC", "sign": 1, "digits": 3, "slope": False, "gain": False, "of_scale": True, "shown": True,
        "scale": "reduced", "status": "finished", "reason": "", "n_seeds": 3, "n_wanted": 3, "n_bad": 0,
        "std": 0.001, "shipped": False,
        "has_print": True, "printed_std_text": "", "comparable_std": math.nan, "print_seeds": math.nan,
        "doubt": "", "on_edge": False,
    }  # fmt: skip
    methods = ["CoDA", "LocalSGDAM", "LocalSGDM", "LocalSCGDAM"]
    frame = pd.DataFrame(
        {name: [value] * len(methods) for name, value in usual.items()} | {"method": methods} | columns
    )
    frame["at"] = [
        {**dict(place), "method": method} for place, method in zip(frame["place"], methods, strict=True)
    ]
    frame["idle"], frame["spread_counted"] = [{} for _ in methods], frame["std"]
    frame["printed_text"] = ["" if math.isnan(value) else f"{value:g}" for value in frame["printed"]]
    return judged(frame, tolerance=0.01)


def test_a_table_is_a_function_of_one_frame() -> None:
    """The best are equal in the digits shown; of the order of three methods that are printed two pairs agree."""
    frame = compared(mean=[0.9004, 0.9001, math.nan, 0.7], printed=[0.8, 0.9, 0.95, math.nan],
                     status=["finished", "finished", "diverged", "finished"], n_bad=[0, 0, 2, 0])  # fmt: skip
    spec = TableSpec(
        title="T", datasets=["FashionMNIST"], rows=["method"], columns=["p"], metrics=["test_auc"]
    )
    axes = {"dataset": ["FashionMNIST"], "p": [4], "method": [*frame["method"]]}
    paper = load_paper("localscgdam")
    grid = layout(paper, spec, axes, frame)
    shown = [
        (entry.value, entry.best, entry.printed, entry.printed_best, entry.symbol) for entry in grid.entries
    ]
    assert shown == [
        ("0.900", True, "0.8", False, "↑"),
        ("0.900", True, "0.9", False, "≈"),
        ("diverged 2/3", False, "0.95", True, ""),
        ("0.700", False, "–", False, ""),
    ]
    partial = layout(paper, spec, axes, frame.assign(status="incomplete", mean=[0.9, 0.91, 0.5, 0.7]))
    assert [entry.best for entry in partial.entries] == [False, True, False, False], "what is shown counts"
    assert notes.order(frame) == "", "two methods have no order"
    three = compared(mean=[0.7, 0.9, 0.8, 0.6], printed=[0.8, 0.9, 0.95, math.nan])
    assert notes.order(three).endswith(": 0.33.")
    other = three.assign(metric="test_ap", printed=[0.8, 0.7, 0.6, math.nan])
    assert notes.order(pd.concat([three, other], ignore_index=True)).endswith(
        ": 0.00 on average over 2 comparisons (−0.33 to 0.33)."
    )


def test_a_board_is_a_function_of_one_frame() -> None:
    """CoDA diverged and counts as random scores, LocalSGDAM is LocalSGDM with its values, none of them is a control."""
    frame = compared(mean=[0.5, 0.9, 0.9, 0.7], printed=[math.nan] * 4,
                     status=["diverged", "finished", "finished", "incomplete"])  # fmt: skip
    frame["values"] = [
        {0: 0.1},
        *({seed: level + seed / 1000 for seed in range(3)} for level in (0.9, 0.9, 0.7)),
    ]
    rules = BoardSpec(random="LocalSCGDAM", pooled="")
    board = board_of("Ones", rules, frame, metric_table.measure("test_auc"), {"LocalSGDAM": "LocalSGDM"})
    assert [(line.method, str(line.rank), line.twin, line.lost) for line in board.lines] == [
        ("LocalSGDM", "1", "", False),
        ("LocalSGDAM", "1", "LocalSGDM", False),
        ("CoDA", "2", "", True),
        ("LocalSCGDAM", "None", "", False),
    ]
    assert board.count == 2 and board.lines[2].values == board.lines[3].values
    frame["values"] = [{0: 0.1}, {0: 0.5, 1: 0.6, 2: 0.7}, {0: 0.4, 1: math.nan, 2: 0.5}, {}]
    board = board_of(
        "Ones", BoardSpec(random="", pooled=""), frame[1:3], metric_table.measure("test_loss"), {}
    )
    assert board.seeds == [0, 2], "a seed without a number counts for no method"
    assert [line.method for line in board.ranked] == ["LocalSGDM", "LocalSGDAM"], "the least loss leads"


def test_an_average_is_over_the_seeds_that_all_have_and_a_twin_on_one_dataset_is_none_on_both() -> None:
    ahead, behind = Line("A", [], {0: 0.9, 1: 0.8, 2: 0.7}), Line("B", [], {0: 0.5, 1: 0.6})
    parts = [
        Board(name, metric_table.measure("test_auc"), [ahead, replace(behind, twin=twin)])
        for name, twin in (("Ones", "A"), ("Twos", ""))
    ]
    board = _averaged(parts, BoardSpec(random="", pooled=""))
    assert (board.seeds, board.count, [line.twin for line in board.lines]) == ([0, 1], 2, ["", ""])


def test_what_learned_nothing_is_counted_among_the_seeds_that_ended() -> None:
    item = Measured(mean=0.5, status="incomplete", n_seeds=2, n_wanted=3, idle={"flat": [1]})
    assert state_text(item, 3) == ("0.500", " (2/3) (1/2 flat)")


def test_of_seeds_that_miss_a_target_are_told_how_many_and_what_the_others_took() -> None:
    missed = Measured(status="not reached", values={0: 10.0, 1: math.inf, 2: 16.0})
    assert state_text(missed, 0) == ("not reached 1/3", " (10, 16)")
    assert state_text(replace(missed, values={0: math.inf}), 0) == ("not reached", "")
    assert state_text(replace(missed, values={0: -0.5}), 2) == ("–", ""), "a slope over it"


def test_a_seed_is_named_only_where_something_ran() -> None:
    spec = SPEC.model_copy(update={"metrics": ["test_auc"]})
    frame = numbers(n_seeds=[0], n_wanted=[1])
    paper, unpublished = load_paper("localscgdam"), frame.assign(printed=math.nan)
    said = [legend.numbers(paper, spec, of) for of in (frame, unpublished, frame.assign(n_seeds=1))]
    assert said == ["Published: test AUC.", "", "Test AUC: one seed."]


def test_a_figure_is_a_function_of_one_frame() -> None:
    """Two seeds at p = 8 spread by 0.02, half of their t-interval is 6.31 * 0.01; at p = 16 one diverged."""
    of_seeds = {8: {0: 0.8, 1: 0.82}, 4: {0: 0.9}, 16: {0: 0.7}}
    status = {8: "finished", 4: "incomplete", 16: "diverged"}
    places = {p: (("dataset", "Toy"), ("p", p)) for p in of_seeds}
    numbers = [
        summarised(
            Measured("reduced", places[p], "CoDA", "test_auc", status[p], values=values, shipped=p == 4)
        )
        for p, values in of_seeds.items()
    ]
    points = final_of("CoDA", "p", numbers, {(places[4], "CoDA", "test_auc"): 0.95})
    assert points is not None and points["shipped"].all()
    assert {*points["remark"]} == {"incomplete at 4, diverged at 16"}
    points = points.round(3)
    assert points["x"].tolist() == [4, 8] and points["mean"].tolist() == [0.9, 0.81]
    assert points["low"].tolist() == [0.9, 0.747] and points["high"].tolist() == [0.9, 0.873]
    assert points["published"].tolist()[0] == 0.95 and math.isnan(points["published"][1])
    assert points["values"].tolist() == [[0.9], [0.8, 0.82]] and points["seeds"].tolist() == [1, 2]
    assert final_of("CoDA", "p", numbers[2:], {}) is None


def runs_of(rows: list[tuple[str, Row]]) -> list[Row]:
    """The runs of cells of three seeds, by the cells' keys, which are their methods too."""
    place = (("dataset", "FashionMNIST"), ("p", 4))
    of_cells = {"scale": "demo", "place": place, "planned": 3}
    return [row._replace(method=cell, cell=cell, **of_cells) for cell, row in rows]


def only(rows: list[tuple[str, Row]], metric: str = "test_auc") -> Any:
    (number,) = measurements(runs_of(rows), [metric])
    return vars(number)


def test_of_a_run_alone_no_count_is_said() -> None:
    """As of one that was shipped: a cell that was trained here has the seeds that are planned."""
    lost = Row("a", 0, "", status="diverged", reason="nan", origin="shipped")
    late = Row("a", 0, "rounds_to_test_auc_0.9", math.inf, reason="best 0.8", origin="shipped")
    assert only([("k", lost)])["reason"] == "the only seed: nan"
    assert only([("k", late)], late.metric)["reason"] == "best 0.8"


def test_seeds_that_miss_a_target_join_those_that_were_shipped() -> None:
    metric = "rounds_to_test_auc_0.9"
    rows = [("k", Row("a", 0, metric, 2.0, origin="shipped"))]
    rows += [("k", Row("b", seed, metric, math.inf, reason=f"best 0.8{seed}")) for seed in (1, 2)]
    made = only(rows, metric)
    assert (made["status"], made["n_seeds"], made["shipped"]) == ("not reached", 3, True)
    assert made["reason"] == "2 of 3 seeds: best 0.81; best 0.82" and made["values"][0] == 2.0


def test_a_run_that_diverged_has_the_worst_of_each_metric_and_what_lacks_has_no_row() -> None:
    """Cell k1 was trained here but for seed 2; k2 was shipped, as one run and an average over seeds; k3 was, too."""
    rows = [
        ("k1", Row("a", 0, "test_auc", 0.9, pace=0.01)),
        ("k1", Row("b", 1, "", status="diverged")),
        ("k1", Row("", -1, "", status="not run", origin="")),
        ("k2", Row("c", 0, "test_auc", 0.8, origin="shipped")),
        ("k2", Row("c", 0, "samples", 64.0, status="averaged", origin="shipped")),
        ("k2", Row("c", 0, "test_ap", 0.7, origin="shipped")),
        ("k3", Row("d", 0, "", status="diverged", origin="shipped")),
        ("k3", Row("e", 1, "test_auc", 0.7, origin="shipped")),
    ]
    numbers = numbers_of(
        runs_of(rows),
        ["test_auc", "test_loss", "samples", "curve_mean_test_auc", "rounds_to_test_auc_0.95"],
        load_paper("localscgdam"),
    )
    shown = numbers[["method", "seed", "metric", "value", "shipped"]].to_numpy().tolist()
    assert shown == [
        ["k1", 0, "test_auc", 0.9, False],
        ["k1", 1, "test_auc", -math.inf, False],
        ["k1", 1, "test_loss", math.inf, False],
        ["k1", 1, "curve_mean_test_auc", -math.inf, False],
        ["k1", 1, "rounds_to_test_auc_0.95", math.inf, False],
        ["k2", 0, "test_auc", 0.8, True],
        ["k3", 0, "test_auc", -math.inf, True],
        ["k3", 0, "test_loss", math.inf, True],
        ["k3", 0, "curve_mean_test_auc", -math.inf, True],
        ["k3", 0, "rounds_to_test_auc_0.95", math.inf, True],
        ["k3", 1, "test_auc", 0.7, True],
    ]
    assert {*numbers.loc[numbers["metric"].str.startswith("rounds"), "tried"]} == {math.inf}
    assert numbers["key"].tolist()[:3] == ["k1"] * 3, "a cell's own key where it was trained here"
    assert numbers["key"].iloc[-1] == key_of(["d", "e"]), "else that of its runs, in their order"
