"""Seeds of a cell measured here, and those that were shipped: one row, and none of them lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from report_project import Project, localscgdam, run_result

from fedbench.errors import UserError
from fedbench.plan.configuration import load_paper
from fedbench.plan.schema import Config
from fedbench.report.numbers import sums
from fedbench.report.numbers.export import export_reproduced
from fedbench.report.numbers.findings import find
from fedbench.report.numbers.shipped import Shelf
from fedbench.report.tables import build as tables
from fedbench.report.tables.document import Table
from fedbench.store import results


def test_seeds_measured_here_join_those_that_were_shipped(project: Project, reduced: Config) -> None:
    five = reduced.model_copy(update={"seeds": [0, 1, 2, 3, 4]})

    def exported(config: Config) -> pd.DataFrame:
        return pd.read_csv(export_reproduced("localscgdam", "table1", config, project.root))

    project.fill("localscgdam", "table1", reduced)
    before = exported(reduced)
    whole = (project.root / "reproduced/reduced/localscgdam/table1.csv").read_text()
    cells = project.cells("localscgdam", "table1", five)
    for cell in project.cells("localscgdam", "table1", reduced):
        (project.root / cell.path).unlink()
    for cell in cells[1:]:
        new = [run_result(run.seed, run.key, {"test_auc": 0.25}) for run in cell.runs if run.seed > 2]
        project.write(cell, new)
    assert exported(five)["n_seeds"].tolist() == [3, *[5] * 29], "what cannot be made whole yet stays"
    only = [run_result(run.seed, run.key, {"test_auc": 0.25}) for run in cells[0].runs if run.seed == 4]
    project.write(cells[0], only)
    pd.testing.assert_series_equal(exported(five).iloc[0], before.iloc[0], check_dtype=False)
    bad = [
        run_result(run.seed, run.key, {}) | {"status": "diverged"} for run in cells[0].runs if run.seed == 4
    ]
    project.write(cells[0], bad)
    row = exported(five).iloc[0]
    assert row["status"] == "diverged" and pd.isna(row["mean"]), "that is what these five seeds are"
    assert row["values"] == before.loc[0, "values"], "and those that ended are not lost"
    assert row["paces"] == before.loc[0, "paces"] and pd.notna(row["paces"]), "with all that is known of them"
    (project.root / "reproduced/reduced/localscgdam/table1.csv").write_text(whole)
    sums.note(project.root / "reproduced", project.root / "reproduced/reduced/localscgdam/table1.csv")
    new = [run_result(run.seed, run.key, {"test_auc": 0.25}) for run in cells[0].runs if run.seed > 2]
    project.write(cells[0], new)
    after = exported(five)
    assert set(after["n_seeds"]) == {5} and set(after["status"]) == {"finished"}
    assert list(after["key"]) == [cell.key for cell in cells]
    for then, now in zip(before["values"], after["values"], strict=True):
        assert now == f"{then} 3:0.25 4:0.25"
    assert after["mean"].to_numpy() == pytest.approx((3 * before["mean"] + 2 * 0.25).to_numpy() / 5, abs=2e-6)
    assert exported(five).equals(after), "a second export has nothing to join"
    for cell in cells:
        (project.root / cell.path).unlink()
    shelf = Shelf(reduced, load_paper("localscgdam", project.root / "config"), project.root)
    cell = project.cells("localscgdam", "table1", reduced)[0]
    assert shelf.has(cell, ["test_auc"]), "whoever asks for three seeds is shown the five"


@pytest.mark.parametrize("shipped_reached", [True, False])
def test_seeds_that_miss_a_target_join_those_that_were_shipped(
    project: Project, reduced: Config, shipped_reached: bool
) -> None:
    """Seed 0 is shipped, 1 and 2 are measured here; those that miss an AUC of 0.9 end at 0.8 and their seed."""
    paper = localscgdam()
    paper["tables"]["table1"] |= {"metrics": ["rounds_to_test_auc_0.9"]}
    project.save_paper("localscgdam", paper)
    cells = project.cells("localscgdam", "table1", reduced)

    def measured(seeds: list[int], reached: bool) -> pd.DataFrame:
        for cell in cells:
            runs = [run for run in cell.runs if run.seed in seeds]
            for run in runs:
                curve = project.curve(run.key, 0.9, ("test_auc",), np.random.default_rng(0))
                last = 0.95 if reached else 0.8 + run.seed / 100
                curve.write_text(f"iteration,round,test_auc\n0,0,0.5\n8,2,{last}\n")
            project.write(cell, [run_result(run.seed, run.key, {"test_auc": 0.5}) for run in runs])
        asked = reduced.model_copy(update={"seeds": list(range(max(seeds) + 1))})
        return pd.read_csv(export_reproduced("localscgdam", "table1", asked, project.root))

    measured([0], shipped_reached)
    after = measured([1, 2], not shipped_reached)
    values, note = ("0:2 1:inf 2:inf", "2 of 3 seeds: best 0.81; best 0.82")
    if not shipped_reached:
        values, note = "0:inf 1:2 2:2", "1 of 3 seeds: best 0.8"
    assert set(after["values"]) == {values} and set(after["note"]) == {note}
    assert set(after["status"]) == {"not reached"} and set(after["n_seeds"]) == {3}
    assert list(after["key"]) == [cell.key for cell in cells]


def test_other_seeds_in_place_of_those_shipped_are_refused(project: Project, reduced: Config) -> None:
    first, second = (reduced.model_copy(update={"seeds": seeds}) for seeds in ([0, 1], [2, 3, 4]))
    project.fill("localscgdam", "table1", first)
    path = export_reproduced("localscgdam", "table1", first, project.root)
    before = path.read_bytes()
    project.fill("localscgdam", "table1", second)
    with pytest.raises(UserError, match="30 of 30 measured rows"):
        export_reproduced("localscgdam", "table1", second, project.root)
    assert path.read_bytes() == before


def test_seeds_of_another_configuration_are_not_joined(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    before = path.read_bytes()
    paper = localscgdam()
    paper["defaults"]["train"]["batch_size"] = 9
    project.save_paper("localscgdam", paper)
    four = reduced.model_copy(update={"seeds": [0, 1, 2, 3]})
    for cell in project.cells("localscgdam", "table1", four):
        project.write(cell, [run_result(3, cell.runs[3].key, {"test_auc": 0.25})])
    with pytest.raises(UserError, match="30 of 30 measured rows"):
        export_reproduced("localscgdam", "table1", four, project.root)
    assert path.read_bytes() == before


def table(project: Project, config: Config) -> Table:
    """The table as it is shown."""
    return tables.make("localscgdam", "table1", config, project.root)


def test_tables_and_claims_show_shipped_seeds_with_those_trained_here(
    project: Project, reduced: Config
) -> None:
    first = reduced.model_copy(update={"seeds": [0]})
    project.fill("localscgdam", "table1", reduced)
    whole = table(project, reduced)
    finding = find("localscgdam", reduced, project.root)[1][0].scales[1]
    export_reproduced("localscgdam", "table1", first, project.root)
    cells = project.cells("localscgdam", "table1", reduced)
    project.forget([cell.runs[0] for cell in cells])
    for cell in cells:
        path = project.root / cell.path
        others = [run for run in results.read(cell.path, project.root) if run["seed"] != 0]
        path.unlink()
        project.write(cell, others)
    both = table(project, reduced)
    ours = both.rows.query("n_seeds > 0")
    assert list(ours["values"]) == list(whole.rows.query("n_seeds > 0")["values"]) and set(
        ours["status"]
    ) == {"finished"}
    assert ours["shipped"].all() and list(ours["verdict"]) == list(whole.rows.query("n_seeds > 0")["verdict"])
    assert all(" reproduced/" in f" {source}" and "results/" in source for source in ours["source"])
    assert "‡: not trained here or for some of its seeds alone; shipped" in both.markdown()
    joined = find("localscgdam", reduced, project.root)[1][0].scales[1]
    assert joined.verdict == finding.verdict and joined.shipped and not joined.means


def test_a_divergence_elsewhere_is_shown_until_all_seeds_are_trained_here(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    (cell, *_) = project.cells("localscgdam", "table1", reduced)
    runs = results.read(cell.path, project.root)
    runs[2] |= {"status": "diverged", "reason": "loss is nan"}
    (project.root / cell.path).unlink()
    project.forget(cell.runs[2:])
    project.write(cell, runs)
    export_reproduced("localscgdam", "table1", reduced, project.root)
    project.forget(cell.runs)

    def shown(seeds: list[int]) -> pd.Series:
        (project.root / cell.path).unlink()
        project.write(cell, [run_result(i, cell.runs[i].key, {"test_auc": 0.5}) for i in seeds])
        return table(project, reduced).rows.query("n_wanted > 0").iloc[0]

    begun, done = shown([0, 1]), shown([0, 1, 2])
    assert (begun["status"], begun["shipped"]) == ("diverged", True) and "1 of 3 seeds" in begun["reason"]
    assert (done["status"], done["shipped"], done["n_seeds"]) == ("finished", False, 3)


def test_seeds_here_and_shipped_that_do_not_make_it_whole_are_shown_together(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    whole = table(project, reduced).rows.query("n_seeds > 0")
    export_reproduced("localscgdam", "table1", reduced.model_copy(update={"seeds": [0]}), project.root)
    cells = project.cells("localscgdam", "table1", reduced)
    project.forget([run for cell in cells for run in cell.runs[::2]])
    for cell in cells[:2]:
        (own,) = [run for run in results.read(cell.path, project.root) if run["seed"] == 1]
        (project.root / cell.path).unlink()
        project.write(cell, [own])
    for cell in cells[2:]:
        (project.root / cell.path).unlink()
    both = table(project, reduced).rows.query("n_seeds > 0")
    assert list(both["status"])[:2] == ["incomplete"] * 2 and list(both["n_seeds"])[:3] == [2, 2, 1]
    assert both.iloc[0]["values"] == " ".join(whole.iloc[0]["values"].split()[:2])
    assert both.iloc[0]["shipped"] and "2 of 3 seeds" in both.iloc[0]["reason"]


def test_a_shipped_number_stands_until_all_its_seeds_are_trained_here(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    export_reproduced("localscgdam", "table1", reduced, project.root)
    (cell, other, *_) = project.cells("localscgdam", "table1", reduced)
    project.forget([*cell.runs, *other.runs])
    project.write(cell, [run_result(0, cell.runs[0].key, {"test_auc": 0.5})])
    bad = run_result(0, other.runs[0].key, {}) | {"status": "diverged", "reason": "loss is nan"}
    project.write(other, [bad])
    rows = table(project, reduced).rows.query("n_wanted > 0")
    assert rows.iloc[0]["status"] == "finished" and rows.iloc[0]["shipped"] and rows.iloc[0]["n_seeds"] == 3
    assert rows.iloc[1]["status"] == "diverged", (
        "what went wrong here is not hidden by a number from elsewhere"
    )
