"""Numbers made of several cells, of a part of the cells, and of curves: held against values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from report_project import Project, localscgdam

from fedbench.errors import UserError
from fedbench.report import tables
from fedbench.results.combine import averages, pool, slope, slopes
from fedbench.results.frame import Measured
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

BASE = {
    "title": "T",
    "datasets": ["CIFAR10"],
    "methods": ["CoDA", "LocalSGDM"],
    "settings": {"p": [4, 8]},
    "metrics": ["test_auc"],
    "rows": ["method"],
    "columns": ["p"],
}


def table(project: Project, methods: dict[str, Any] | None = None, **changes: Any) -> None:
    """Write a paper whose table1 is BASE with changes."""
    paper = localscgdam()
    paper["tables"]["table1"] = BASE | changes
    paper["claims"] = []
    for name, entry in (methods or {}).items():
        paper["methods"][name] |= entry
    project.save_paper("localscgdam", paper)


def cells(project: Project, config: Config) -> dict[tuple[Any, ...], Any]:
    chosen = project.cells("localscgdam", "table1", config)
    return {(cell.method, *cell.setting.values()): cell for cell in chosen}


def rows(config: Config, *index: str) -> pd.DataFrame:
    return tables.table_of(Plan(config), "table1").rows.set_index(list(index))


def test_an_average_is_taken_seed_by_seed(project: Project, reduced: Config) -> None:
    table(project, average="p")
    chosen = cells(project, reduced)
    project.finish(chosen["CoDA", 4, 0.1], [0.8, 0.9, 1.0])
    project.finish(chosen["CoDA", 8, 0.1], [1.0, 0.9, 0.8])
    project.finish(chosen["LocalSGDM", 4, 0.1], [0.5, 0.5, 0.5])
    made = rows(reduced, "method", "p")
    average = made.loc[("CoDA", "AVG")]
    assert average["mean"] == pytest.approx(0.9)
    assert average["std"] == pytest.approx(0.0, abs=1e-12), (
        "the spread of averages, not of all six values (0.09)"
    )
    assert (average["status"], average["n_seeds"], average["n_wanted"]) == ("finished", 3, 3)
    assert made.loc[("LocalSGDM", "AVG"), "status"] == "not run"
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "| AVG" in text and "p = AVG" not in text
    assert "* AVG: mean over the values of p, taken seed by seed." in text


def test_an_average_over_datasets_is_that_of_the_papers_own(project: Project, reduced: Config) -> None:
    """As a printed one is; what is ours has a column beside it."""
    table(project, average="dataset", additions=["FashionMNIST"], settings={"p": [4]}, columns=["dataset"])
    for cell in project.cells("localscgdam", "table1", reduced):
        project.finish(cell, [0.8 if cell.dataset == "CIFAR10" else 0.6] * 3)
    means = rows(reduced, "method", "dataset").loc["CoDA", "mean"]
    assert means.to_dict() == pytest.approx({"CIFAR10": 0.8, "FashionMNIST": 0.6, "AVG": 0.8})


def test_the_published_average_is_what_the_average_is_held_against(project: Project, reduced: Config) -> None:
    file = project.root / "published" / "localscgdam" / "averages.csv"
    file.write_text("dataset,method,p,metric,mean,std,note\nCIFAR10,CoDA,AVG,test_auc,0.95,,\n")
    table(project, average="p", published="averages.csv")
    for cell in cells(project, reduced).values():
        project.finish(cell, [0.9, 0.9, 0.9])
    made = rows(reduced, "method", "p")
    assert made.loc[("CoDA", "AVG"), "difference"] == pytest.approx(-0.05)


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
    table(project, pool=["p"], rows=["method"], columns=["imratio"], settings={"p": [4, 8], "imratio": [0.1]})
    chosen = cells(project, reduced)
    project.finish(chosen["CoDA", 4, 0.1], [0.1, 0.2, 0.3])
    project.finish(chosen["CoDA", 8, 0.1], [0.4, 0.5, 0.9])
    project.finish(chosen["LocalSGDM", 4, 0.1], [0.1, 0.2, 0.3])
    made = rows(reduced, "method")
    assert made.loc["CoDA", "mean"] == pytest.approx(0.4)
    assert made.loc["CoDA", "std"] == pytest.approx(0.1802776, rel=1e-5)  # of 0.25, 0.35, 0.6 with ddof 1
    assert made.loc["CoDA", ["n_seeds", "n_wanted"]].tolist() == [3, 3]
    assert made.loc["LocalSGDM", "status"] == "not run", "one of its two periods is"


def test_the_rule_that_chooses_the_evaluation_is_said(project: Project, reduced: Config) -> None:
    table(project)
    assert "evaluation that counts" not in tables.table_of(Plan(reduced), "table1").markdown()
    paper = localscgdam()
    paper["defaults"]["data"]["validation"] = 0.1
    paper["methods"]["CoDA"]["train"] = {"select": "val_auc"}
    paper["tables"]["table1"], paper["claims"] = BASE, []
    project.save_paper("localscgdam", paper)
    text = tables.table_of(Plan(reduced), "table1").markdown()
    said = (
        "The evaluation that counts is the last one or, as configured, the one with the best validation AUC."
    )
    assert said in text
    paper["defaults"]["train"] = {**paper["defaults"]["train"], "select": "val_auc"}
    project.save_paper("localscgdam", paper)
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "The evaluation that counts is the one with the best validation AUC." in text


def test_rows_without_a_cell_are_left_out_and_places_without_one_are_blank(
    project: Project, reduced: Config
) -> None:
    only = {"CoDA": {"only": {"p": [4]}}}
    table(project, only)
    for cell in cells(project, reduced).values():
        project.finish(cell, [0.9, 0.9, 0.9])
    made = tables.table_of(Plan(reduced), "table1")
    assert set(made.rows.set_index(["method", "p"]).index) == {
        ("CoDA", 4),
        ("LocalSGDM", 4),
        ("LocalSGDM", 8),
    }
    blank = made.grid.rows[0].entries[0][1]
    assert (made.grid.rows[0].label, blank.value, blank.item) == ("CoDA", "", None)
    assert made.forms().keys() == {"tex", "csv", "md", "json", "macros.tex"}, "all forms take a blank place"
    table(project, only, rows=["p", "method"], columns=[])
    made = tables.table_of(Plan(reduced), "table1")
    assert [[row.label for row in block.rows] for block in made.grid.blocks] == [
        ["CoDA", "LocalSGDM"],
        ["LocalSGDM"],
    ]


def test_rounds_to_a_target_are_read_from_the_curve(project: Project, reduced: Config) -> None:
    table(project, metrics=[], rounds_to={"test_auc": [0.75, 0.95]})
    chosen = cells(project, reduced)
    curves = {0: [0.5, 0.7, 0.75, 0.9], 1: [0.5, 0.76, 0.7, 0.8], 2: [0.5, 0.6, 0.7, 0.96]}
    cell = chosen["CoDA", 4, 0.1]
    for run in cell.runs:
        project.write_curve(run.key, {"round": [0, 5, 10, 15], "test_auc": curves[run.seed]})
    project.finish(cell, [0.9, 0.8, 0.96])
    made = rows(reduced, "method", "p", "metric")
    early, late = (made.loc[("CoDA", 4, f"rounds_to_test_auc_{target}")] for target in (0.75, 0.95))
    assert (early["mean"], early["status"]) == ((10 + 5 + 15) / 3, "finished")
    assert (late["status"], late["n_seeds"]) == ("not reached", 3)
    assert late["reason"] == "2 of 3 seeds: best 0.9; best 0.8"
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "rounds to test AUC 0.75" in text.lower() or "Rounds to test AUC 0.75" in text
    assert "| 10±5" in text and "not reached" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"average": "q"}, "unknown axis to average over 'q'"),
        ({"average": "method"}, "unknown axis to average over 'method'"),
        ({"pool": ["q"]}, "table1: pool: unknown setting 'q'"),
        ({"rounds_to": {"test_auk": 0.9}}, "unknown metric 'rounds_to_test_auk_0.9'"),
        (
            {"rounds_to": {"test_auc": [0.9, 1.0]}},
            "a target lies between 0.5, which is chance, and 1; not at 1",
        ),
        ({"rounds_to": {"test_auc": 0.5}}, "not at 0.5"),
        ({"slope": "p"}, "slope: p takes 4, 8; a slope of logarithms takes 3 or more"),
        ({"slope": "method"}, "setting to fit a slope along"),
    ],
)
def test_slips_are_named(project: Project, reduced: Config, changes: dict[str, Any], message: str) -> None:
    table(project, **changes)
    with pytest.raises(UserError, match=message):
        tables.table_of(Plan(reduced), "table1")


def reaching(project: Project, cell: Any, rounds: list[float]) -> None:
    """Finish a cell whose seeds reach an AUC of 0.95 in a given round."""
    for run, reached in zip(cell.runs, rounds, strict=True):
        project.write_curve(run.key, {"round": [0.0, reached], "test_auc": [0.5, 0.95]})
    project.finish(cell, [0.95] * len(rounds))


def test_a_slope_is_fitted_seed_by_seed(project: Project, reduced: Config) -> None:
    """Rounds of 64/p have slope -1, constant ones 0; a target that is missed anywhere gives none."""
    changes = {"settings": {"p": [4, 8, 16]}, "metrics": [], "rounds_to": {"test_auc": 0.9}, "slope": "p"}
    table(project, **changes, columns=["p"])
    for (method, p, *_), cell in cells(project, reduced).items():
        reaching(project, cell, [64 / p, 640 / p, 6.4 / p] if method == "CoDA" else [5.0, 7.0, 9.0])
    made = rows(reduced, "method", "p")
    slope = made.loc[("CoDA", "slope")]
    assert (slope["mean"], slope["std"]) == (pytest.approx(-1), pytest.approx(0, abs=1e-12)), (
        "not of the means"
    )
    assert (slope["status"], slope["n_seeds"]) == ("finished", 3)
    assert made.loc[("LocalSGDM", "slope"), "mean"] == pytest.approx(0, abs=1e-12)
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "| slope" in text and "−1.00" in text.replace("-", "−") and "p = slope" not in text
    assert "* Slope: of log number over log p" in text
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
