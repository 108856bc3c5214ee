"""A shipped run that another machine, or a later code, makes again with the same numbers is marked so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_project import Project

from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.numbers import verified
from fedbench.report.numbers.export import export_reproduced
from fedbench.report.tables import build as tables
from fedbench.store import results

ELSEWHERE = {"commit": "ba9876543210", "hardware": "another machine"}


@pytest.fixture
def shipped(project: Project, reduced: Config) -> bytes:
    """What an export of Table 1 leaves in the file."""
    project.fill("localscgdam", "table1", reduced)
    return export(reduced)


def export(config: Config) -> bytes:
    return export_reproduced(Plan(config), "table1").read_bytes()


def again(project: Project, cell: Cell, change: float = 0.0, **made: Any) -> None:
    """Train a cell again: elsewhere, with an AUC that is as much higher."""
    runs = results.read(cell.path)
    for run in runs:
        run["provenance"] = {**run["provenance"], **(made or ELSEWHERE)}
        run["metrics"] = {**run["metrics"], "test_auc": run["metrics"]["test_auc"] + change}
    project.write(cell, runs)


def listed(project: Project) -> pd.DataFrame:
    return pd.read_csv(project.root / verified.FILE)


def test_a_run_that_is_made_again_elsewhere_is_listed_and_its_row_stays(
    project: Project, reduced: Config, shipped: bytes
) -> None:
    cell = project.cells("localscgdam", "table1", reduced)[1]
    again(project, cell, change=0.0003)  # less than the table's digits
    assert export(reduced) == shipped, "the row of the first machine"
    rows = listed(project)
    assert list(rows.columns) == ["key", "metric", "value", "hardware", "commit", "date"]
    auc = rows[rows["metric"] == "test_auc"]
    assert {*auc["key"]} == {run.key for run in cell.runs} and {*rows["hardware"]} == {"another machine"}
    assert not {"seconds", "floats_up"} & {*rows["metric"]}, "costs are no numbers to be found again"
    before = (project.root / verified.FILE).read_bytes()
    export(reduced)
    assert (project.root / verified.FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "made"),
    [
        (0.0007, ELSEWHERE),  # more than half of the last digit that tables show
        (0.0, {"commit": "0123456789ab"}),
        (0.0, {"commit": "ba9876543210+"}),
    ],
)
def test_other_numbers_the_same_machine_and_code_or_local_changes_verify_nothing(
    project: Project, reduced: Config, shipped: bytes, change: float, made: dict[str, str]
) -> None:
    again(project, project.cells("localscgdam", "table1", reduced)[1], change, **made)
    export(reduced)
    assert not (project.root / verified.FILE).exists()


@pytest.mark.parametrize("made", [{"commit": "ba9876543210"}, {"hardware": "another machine"}])
def test_a_later_code_or_another_machine_is_enough_and_each_is_listed_once(
    project: Project, reduced: Config, shipped: bytes, made: dict[str, str]
) -> None:
    cell = project.cells("localscgdam", "table1", reduced)[1]
    for more in (made, made | {"commit": "cd9876543210"}):
        again(project, cell, **more)
        export(reduced)
    auc = listed(project).query("metric == 'test_auc'")
    commits = [made.get("commit", "0123456789ab"), "cd9876543210"]
    assert sorted(auc["commit"]) == sorted(commits * len(cell.runs))
    assert {*auc["hardware"]} == {made.get("hardware", "2 cores")}


def test_means_over_seeds_in_the_file_contradict_no_run_and_a_diverged_one_is_no_number(
    project: Project, reduced: Config, shipped: bytes
) -> None:
    first, second = project.cells("localscgdam", "table1", reduced)[:2]
    for machine in ({"hardware": "2 cores"}, ELSEWHERE):
        again(project, first, **machine)
        runs = results.read(first.path)
        project.write(first, [runs[0] | {"status": "diverged", "reason": "loss is nan"}, *runs[1:]])
        again(project, second, **machine)
        path = export_reproduced(Plan(reduced), "table1")
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows.loc[rows["metric"] == "device_mean_test_auc", ["value", "status"]] = ["0.5", "averaged"]
        rows.to_csv(path, index=False)
    keys = {run.key for run in (*first.runs[1:], *second.runs)}
    assert {*listed(project)["key"]} == keys


def test_a_cell_is_marked_once_all_of_its_runs_are_there_again(
    project: Project, reduced: Config, shipped: bytes
) -> None:
    first, second = project.cells("localscgdam", "table1", reduced)[:2]
    again(project, first)
    again(project, second)
    export(reduced)
    rows = listed(project)
    path = project.root / verified.FILE
    rows[rows["key"] != second.runs[0].key].to_csv(path, index=False)
    for cell in project.cells("localscgdam", "table1", reduced):
        (project.root / cell.path).unlink()
        project.forget(cell.runs)
    table = tables.make(Plan(reduced), "table1")
    said = table.terminal()
    assert said.count("‡✓") == 1 and "✓: repeated" in said
    assert table.tex().count(r"$^\ddagger$$\surd$") == 1
    assert not {"‡", "✓"} & {*table.macros()}, "digits alone, which siunitx takes"


def test_what_is_shipped_as_verified_is_shipped_as_a_number() -> None:
    root = Path(__file__).parents[3]
    files = [pd.read_csv(path, dtype=str) for path in root.glob("reproduced/*/*.csv")]
    again = pd.read_csv(root / verified.FILE, dtype=str)
    result = again.merge(pd.concat(files), on=["key", "metric"], suffixes=("", "_before"))
    assert {*result["key"]} == {*again["key"]} and len(again) > 0
    assert (result["value"].astype(float) - result["value_before"].astype(float)).abs().max() <= 0.0005
    assert not verified.repeated(result[list(again.columns)].drop(columns="date"), pd.concat(files)).empty
