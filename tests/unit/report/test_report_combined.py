"""Numbers made of several cells, of a part of the cells, and of curves: held against values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from report_project import Project, localscgdam, table_of

from fedbench.report import notes
from fedbench.results.combine import averages, pool, slope, slopes
from fedbench.results.frame import Measured
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper
from fedbench.study.schema import Config

BASE = {
    "title": "T", "datasets": ["CIFAR10"], "methods": ["CoDA", "LocalSGDM"], "settings": {"p": [4, 8]},
    "metrics": ["test_auc"], "rows": ["method"], "columns": ["p"],
}  # fmt: skip


def table(project: Project, methods: dict[str, Any] | None = None, **changes: Any) -> None:
    """Write a paper whose table1 is BASE with changes."""
    paper = localscgdam()
    paper["tables"]["table1"] = BASE | changes
    paper["claims"] = []
    for name, entry in (methods or {}).items():
        paper["methods"][name] |= entry
    project.save_paper("localscgdam", paper)


def rows(config: Config, *index: str) -> pd.DataFrame:
    return table_of(config).rows.set_index(list(index))


def of_coda(cell: Cell) -> list[float]:
    """CoDA's values rise with the seed at p = 4 and fall at p = 8."""
    values = {4: [0.8, 0.9, 1.0], 8: [1.0, 0.9, 0.8]}
    return values[int(cell.setting["p"])] if cell.method == "CoDA" else []


def test_an_average_is_taken_seed_by_seed_and_held_against_the_published_one(
    project: Project, reduced: Config
) -> None:
    file = project.root / "published" / "localscgdam" / "averages.csv"
    file.write_text("dataset,method,p,metric,mean,std,note\nCIFAR10,CoDA,AVG,test_auc,0.95,,\n")
    table(project, average="p", published="averages.csv")
    project.finish_each(reduced, of_coda)
    made = rows(reduced, "method", "p")
    average = made.loc[("CoDA", "AVG")]
    assert (average["mean"], average["difference"]) == pytest.approx((0.9, -0.05))
    assert average["std"] == pytest.approx(0.0, abs=1e-12), "of averages, not of all six values (0.09)"
    assert (average["status"], average["n_seeds"], average["n_wanted"]) == ("finished", 3, 3)
    assert made.loc[("LocalSGDM", "AVG"), "status"] == "not run"
    text = table_of(reduced).markdown()
    assert "| AVG" in text and "p = AVG" not in text and "* AVG: mean over the values of p" in text


def test_an_average_over_datasets_is_that_of_the_papers_own(project: Project, reduced: Config) -> None:
    """As a printed one is; what is ours has a column beside it."""
    table(project, average="dataset", additions=["FashionMNIST"], settings={"p": [4]}, columns=["dataset"])
    project.finish_each(reduced, lambda cell: [0.8 if cell.dataset == "CIFAR10" else 0.6] * 3)
    means = rows(reduced, "method", "dataset").loc["CoDA", "mean"]
    assert means.to_dict() == pytest.approx({"CIFAR10": 0.8, "FashionMNIST": 0.6, "AVG": 0.8})


def measured(status: str, values: dict[int, float], p: int = 4, **more: Any) -> Measured:
    """A measurement of two wanted seeds at one p."""
    place = (("dataset", "c"), ("p", p))
    return Measured("b", place, "m", "x", status, **{"n_wanted": 2, "values": values, **more})


def test_an_average_needs_all_its_values_and_is_as_bad_as_the_worst() -> None:
    full = measured("finished", {0: 0.2, 1: 0.4}, paces={0: 0.01, 1: 0.02})
    rest = measured("finished", {0: 7.0, 1: 7.0}, 16)

    def averaged(*rows: Measured, over: Sequence[int] = (4, 8)) -> Measured:
        (number,) = averages([*rows, rest], "p", over)
        return number

    part = averaged(full, measured("incomplete", {1: 0.8}, 8))
    assert (part.status, part.values) == ("incomplete", {1: pytest.approx(0.6)})
    assert part.place == (("dataset", "c"), ("p", "AVG"))
    broken = averaged(full, measured("diverged", {1: 0.8}, 8, reason="1 of 2 seeds: nan", n_bad=1))
    assert (broken.status, broken.n_bad) == ("diverged", 1) and "nan" in broken.reason
    first = averaged(measured("failed", {1: 0.2}), measured("diverged", {1: 0.8}, 8))
    assert first.status == "diverged", "which is the method's, not a machine's"
    fewer = averaged(replace(full, signs={1: "flat"}), measured("finished", {0: 0.6}, 8, n_wanted=1))
    assert (fewer.status, fewer.n_wanted, fewer.idle) == ("incomplete", 2, {}), "seed 1 is no part of it"
    fast = measured("finished", {0: 0.6, 1: 0.8}, 8, paces={1: 0.04})
    assert averaged(full, fast).paces == {1: pytest.approx(0.03)}
    few = averaged(full, over=(4, 8, 32))
    assert (few.status, few.reason, few.values) == ("not run", "only 1 of its 3 values are run", {})
    (pooled,) = pool([full, fast], ["p"])
    assert (pooled.place, pooled.n_seeds, pooled.n_wanted) == ((("dataset", "c"),), 2, 2)
    assert pooled.values == averaged(full, fast).values and pooled.paces == {1: pytest.approx(0.03)}


def test_a_pooled_setting_adds_no_seeds_and_no_spread(project: Project, reduced: Config) -> None:
    table(project, pool=["p"], columns=["imratio"], settings={"p": [4, 8], "imratio": [0.1]})
    values = {("CoDA", 4): [0.1, 0.2, 0.3], ("CoDA", 8): [0.4, 0.5, 0.9], ("LocalSGDM", 4): [0.1, 0.2, 0.3]}
    project.finish_each(reduced, lambda cell: values.get((cell.method, int(cell.setting["p"]))))
    made = rows(reduced, "method")
    assert made.loc["CoDA", ["mean", "std"]].tolist() == pytest.approx([0.4, 0.1802776])  # of 0.25, 0.35, 0.6
    assert made.loc["CoDA", ["n_seeds", "n_wanted"]].tolist() == [3, 3]
    assert made.loc["LocalSGDM", "status"] == "not run", "one of its two periods is"


def test_the_rule_that_chooses_the_evaluation_is_said(project: Project, reduced: Config) -> None:
    paper, (cell, *_) = load_paper("localscgdam"), project.cells("localscgdam", "table1", reduced)
    train = cell.runs[0].train.model_copy(update={"select": "val_auc"})
    chosen = cell.model_copy(update={"runs": [cell.runs[0].model_copy(update={"train": train})]})
    assert notes.selection(paper, [cell]) == ""
    assert notes.selection(paper, [chosen]).endswith("is the one with the best validation AUC.")
    assert notes.selection(paper, [chosen, cell]).endswith(
        "is the last one or, as configured, the one with the best validation AUC."
    )


def test_rows_without_a_cell_are_left_out_and_places_without_one_are_blank(
    project: Project, reduced: Config
) -> None:
    only = {"CoDA": {"only": {"p": [4]}}}
    table(project, only)
    project.finish_each(reduced, lambda cell: [0.9] * 3)
    made = table_of(reduced)
    places = {*made.rows.set_index(["method", "p"]).index}
    assert places == {("CoDA", 4), ("LocalSGDM", 4), ("LocalSGDM", 8)}
    blank = made.grid.rows[0].entries[0][1]
    assert (made.grid.rows[0].label, blank.value, blank.item) == ("CoDA", "", None)
    assert all(made.forms().values()), "all forms take a blank place"
    table(project, only, rows=["p", "method"], columns=[])
    blocks = [[row.label for row in block.rows] for block in table_of(reduced).grid.blocks]
    assert blocks == [["CoDA", "LocalSGDM"], ["LocalSGDM"]]


def test_rounds_to_a_target_are_read_from_the_curve_and_have_a_slope_seed_by_seed(
    project: Project, reduced: Config
) -> None:
    """CoDA's rounds of 64/p have slope -1, constant ones 0; of two targets it misses the second."""
    targets = {"test_auc": [0.75, 0.97]}
    table(project, settings={"p": [4, 8, 16]}, metrics=[], rounds_to=targets, slope="p")
    for cell in project.cells("localscgdam", "table1", reduced):
        p = float(str(cell.setting["p"]))
        rounds = [64 / p, 640 / p, 6.4 / p] if cell.method == "CoDA" else [5.0, 7.0, 9.0]
        for run, reached in zip(cell.runs, rounds, strict=True):
            late = 0.96 if cell.method == "CoDA" and run.seed else 0.98
            project.write_curve(run.key, {"round": [0, reached, 999], "test_auc": [0.5, 0.75, late]})
        project.finish(cell, [0.95] * 3)
    made = rows(reduced, "metric", "method", "p")
    early, late = (made.loc[f"rounds_to_test_auc_{target}"] for target in (0.75, 0.97))
    assert early.loc[("CoDA", 4), "mean"] == pytest.approx((16 + 160 + 1.6) / 3)
    assert (late.loc[("CoDA", 4), "status"], late.loc[("CoDA", 4), "n_seeds"]) == ("not reached", 3)
    assert late.loc[("CoDA", 4), "reason"] == "2 of 3 seeds: best 0.96; best 0.96"
    fits = early.loc[[("CoDA", "slope"), ("LocalSGDM", "slope")], ["mean", "std", "n_seeds"]]
    assert fits.to_numpy().tolist() == [pytest.approx([-1, 0, 3]), pytest.approx([0, 0, 3], abs=1e-12)]
    text = table_of(reduced).markdown()
    assert "| slope" in text and "−1.00" in text.replace("-", "−") and "* Slope: of log number" in text
    lines = [line for line in text.splitlines() if line.startswith(("| CoDA", "| LocalSGDM"))]
    assert len(lines) == 2 and all("**" not in line.split("|")[-2] for line in lines), "slopes are no race"
    assert any("**" in line for line in lines), "rounds are"


def test_a_slope_needs_all_its_points() -> None:
    full = [measured("finished", {0: 8 / p, 1: float(p)}, p) for p in (1, 2, 4)]

    def sloped(*rows: Measured, over: Sequence[int] = (1, 2, 4)) -> Measured:
        (number,) = slopes(rows, "p", over)
        return number

    assert sloped(*full).values == {0: pytest.approx(-1), 1: pytest.approx(1)}
    assert sloped(*full).place == (("dataset", "c"), ("p", "slope"))
    assert sloped(*full[:2], measured("not reached", {0: 2.0, 1: math.inf}, 4)).status == "not reached"
    few = sloped(*full, over=(1, 2, 4, 8))
    assert (few.status, few.reason) == ("not run", "only 3 of its 4 values are run")
    zero = sloped(*full[:2], measured("finished", {0: 0.0, 1: 0.0}, 4))
    assert zero.status == "undefined" and "positive" in zero.reason and not zero.values
    apart = sloped(*full[:2], measured("incomplete", {2: 3.0}, 4))
    assert apart.status == "not run", "no seed has all"
    assert not slopes(full[:2], "p", (1, 2)) and math.isnan(slope([1, 2], [3, 4]))
