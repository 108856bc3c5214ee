"""Runs under ``reproduced/``: shown where they were not trained here, marked, and only while their keys are right."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from report_project import Project, run_result

from fedbench.errors import UserError
from fedbench.report import tables
from fedbench.results.claims.findings import find
from fedbench.results.export import export_reproduced
from fedbench.results.shipped import Shipped
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

FILE = "reproduced/reduced/localscgdam.csv"
Fill = Callable[[str, str], Project]


@pytest.fixture
def shipped(project: Project, filled: Fill, reduced: Config) -> Project:
    """Everything of the reduced scale measured, exported, and its runs gone."""

    def make() -> None:
        filled("localscgdam", "table1")
        export_reproduced(Plan(reduced), "table1")
        shutil.rmtree(project.root / "results")

    project.once("shipped", make)
    return project


def text(config: Config) -> str:
    """The table as Markdown."""
    return tables.table_of(Plan(config), "table1").markdown()


def test_shipped_numbers_are_shown_and_marked(filled: Fill, reduced: Config) -> None:
    project: Project = filled("localscgdam", "table1")
    trained = tables.table_of(Plan(reduced), "table1")
    export_reproduced(Plan(reduced), "table1")
    shutil.rmtree(project.root / "results")
    table = tables.table_of(Plan(reduced), "table1")
    same = ["mean", "std", "values", "verdict", "key", "commit"]
    pd_before, pd_after = trained.rows[same], table.rows[same]
    assert (pd_before["verdict"] == pd_after["verdict"]).all() and (
        pd_before["values"] == pd_after["values"]
    ).all()
    assert pd_after["mean"].to_numpy() == pytest.approx(pd_before["mean"].to_numpy(), abs=1e-6, nan_ok=True)
    for row in trained.rows.query("status == 'finished'").itertuples():
        assert f"{row.dataset}/" in row.source and (project.root / "results").name in row.source
    for row in table.rows.query("shipped").itertuples():
        name, _, lines = row.source.partition(":")
        first, last = map(int, lines.split("-"))
        read = [line.split(",") for line in (project.root / name).read_text().splitlines()[first - 1 : last]]
        assert all({row.dataset, row.method, str(row.p), "test_auc"} <= {*line} for line in read)
        assert [line[4] for line in read] == ["0", "1", "2"], "the lines of the file that it was read from"
    assert not trained.rows["shipped"].any() and table.rows["shipped"].sum() == 30
    said = table.markdown()
    assert said.count("‡") == 31 and "‡" not in trained.markdown() and "‡: not trained here." in said
    assert "Scale reduced: nothing trained here" in said
    assert r"$^\ddagger$" in table.tex()


def test_a_job_that_failed_here_is_not_covered_by_shipped_numbers(shipped: Project, reduced: Config) -> None:
    (cell, *_) = shipped.cells("localscgdam", "table1", reduced)
    log = shipped.root / "logs/train/reduced" / f"{cell.name}.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: the disk is full\n")
    rows = tables.table_of(Plan(reduced), "table1").rows
    (failed,) = rows[rows["status"] == "failed"].to_dict("records")
    assert (failed["method"], failed["shipped"]) == (cell.method, False) and "disk is full" in failed[
        "reason"
    ]
    assert rows["shipped"].sum() == 29


def test_what_was_trained_here_comes_first(shipped: Project, reduced: Config) -> None:
    (cell, *_) = shipped.cells("localscgdam", "table1", reduced)
    shipped.finish(cell, [0.5, 0.5, 0.5])
    rows = tables.table_of(Plan(reduced), "table1").rows
    assert rows["shipped"].sum() == 29 and rows.loc[rows["mean"] == 0.5, "shipped"].tolist() == [False]


def test_another_scale_shows_them_as_what_they_are(shipped: Project) -> None:
    said = text(Config(scale="demo"))
    assert "**CIFAR10 (‡ scale reduced)**" in said
    assert "‡: trained elsewhere, at scale reduced." in said.splitlines()[0], "the caption names each scale"
    rows = tables.table_of(Plan(Config(scale="demo")), "table1").rows
    assert set(rows.loc[rows["shipped"], "scale"]) == {"reduced"}
    (cell, *_) = shipped.cells("localscgdam", "table1", Config(scale="reduced"))
    shipped.finish(cell, [0.5, 0.5, 0.5])
    assert tables.table_of(Plan(Config(scale="demo")), "table1").rows.equals(rows), (
        "what ran there here is no other"
    )
    assert text(Config(scale="paper")).count("(‡ scale reduced)") == 0, "its own cells are to be run"


def test_methods_of_a_place_are_shown_at_one_scale(shipped: Project) -> None:
    """A scale nearer to the paper that lacks a method gives way to one that has them all."""
    paper, demo = Config(scale="paper", seeds=[0], datasets=["CIFAR10"]), Config(scale="demo")
    shipped.fill("localscgdam", "table1", paper)
    for cell in shipped.cells("localscgdam", "table1", paper):
        if cell.setting["p"] == 4 and cell.method == "CoDA":
            (shipped.root / cell.path).unlink()
            shipped.forget(cell.runs)
    export_reproduced(Plan(paper), "table1")
    shutil.rmtree(shipped.root / "results")
    rows = tables.table_of(Plan(demo), "table1").rows.query("dataset == 'CIFAR10'")
    scales = {p: set(part["scale"]) for p, part in rows.groupby("p")}
    assert scales == {4: {"reduced"}, 8: {"paper"}, 16: {"paper"}} and rows["shipped"].all()


def test_a_changed_configuration_has_no_shipped_numbers(shipped: Project, reduced: Config) -> None:
    shipped.change(methods={"CoDA": {"params": {"lr": 0.123}}})
    table = tables.table_of(Plan(reduced), "table1")
    rows = table.rows
    assert ": nothing trained here" in table.title, "cells that are not run have no seeds"
    assert not rows.loc[rows["method"] == "CoDA", "shipped"].any()
    assert rows.loc[rows["method"] != "CoDA", "shipped"].sum() == 24


def test_they_can_be_left_out(shipped: Project) -> None:
    assert "‡" not in text(Config(scale="reduced", shipped=False))


@pytest.mark.parametrize(("column", "value"), [("value", "x"), ("pace", "1 h"), ("seed", "x"), ("seed", "")])
def test_a_row_that_no_export_wrote_is_named(
    shipped: Project, reduced: Config, column: str, value: str
) -> None:
    path = shipped.root / FILE
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows.loc[rows.index[rows["metric"] == "test_auc"][3], column] = value
    rows.to_csv(path, index=False)
    with pytest.raises(UserError, match=rf"localscgdam\.csv .*{value}"):
        text(reduced)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("value", ""), ("value", "1.2"), ("value", "-0.1"), ("metric", ""), ("sign", "lost"), ("status", "done"),
        ("status", "diverged"), ("seed", "-1"),
    ],
)  # fmt: skip
def test_a_cell_that_no_export_writes_is_named_by_its_line(
    shipped: Project, reduced: Config, column: str, value: str
) -> None:
    path = shipped.root / FILE
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    line = rows.index[rows["metric"] == "test_auc"][3]
    rows.loc[line, column] = value
    rows.to_csv(path, index=False)
    with pytest.raises(UserError, match=rf"localscgdam\.csv:{line + 2}: "):
        text(reduced)


def test_two_values_of_a_run_are_an_error(shipped: Project, reduced: Config) -> None:
    """As after a merge that kept both sides."""
    path = shipped.root / FILE
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if ",test_auc,0.8" in line)
    path.write_text("\n".join([*lines, lines[at].replace(",test_auc,0.8", ",test_auc,0.7")]) + "\n")
    of = r"localscgdam\.csv:"
    with pytest.raises(
        UserError, match=rf"{of}{len(lines) + 1}: .*test_auc.* 0\.7\d+.*{of}{at + 1} .*0\.8\d+"
    ):
        text(reduced)


def test_a_file_of_another_form_is_named(shipped: Project, reduced: Config) -> None:
    path = shipped.root / FILE
    path.write_text(path.read_text().replace(",seed,", ",repeat,", 1))
    with pytest.raises(
        UserError, match=r"localscgdam\.csv lacks the column seed: it is not a file that `fedbench export`"
    ):
        text(reduced)


def test_a_changed_key_and_a_seed_of_its_own_do_not_count(shipped: Project, reduced: Config) -> None:
    """A row is found by the key of today; other seeds of a cell that was not trained here count too."""
    path = shipped.root / FILE
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    cell = shipped.cells("localscgdam", "table1", reduced)[0]
    of_cell = (rows["dataset"] == cell.dataset) & (rows["method"] == cell.method) & (rows["p"] == "4")
    rows.loc[of_cell & (rows["seed"] == "1"), "key"] = "0" * 16
    more = rows[of_cell & (rows["seed"] == "2")].assign(
        seed="7", key=cell.runs[0].seeded(7).key, value="0.25"
    )
    pd.concat([rows, more]).to_csv(path, index=False)

    def seeds() -> list[str]:
        row = shown(reduced).iloc[0]
        assert row["n_wanted"] == 3
        return [pair.split(":")[0] for pair in row["values"].split()]

    assert seeds() == ["0", "2", "7"]
    shipped.write(cell, [run_result(0, cell.runs[0].key, {"test_auc": 0.5})])
    assert seeds() == ["0", "2"], "with a run of ours those that are planned alone"


def test_a_cell_is_shipped_with_all_metrics_that_are_asked_for_or_not_at_all(
    shipped: Project, reduced: Config
) -> None:
    (cell, *_) = shipped.cells("localscgdam", "table1", reduced)
    rows = Shipped(Plan(reduced))
    assert rows.has(cell, ["test_auc"]) and not rows.has(cell, ["test_auc", "test_ap"])


def without(project: Project, cell: Cell, seeds: list[int]) -> None:
    """Take some seeds of a cell away, as if another machine had trained them."""
    others = [run for run in project.runs(cell) if run["seed"] not in seeds]
    (project.root / cell.path).unlink()
    project.forget([run for run in cell.runs if run.seed in seeds])
    if others:
        project.write(cell, others)


def shown(config: Config) -> pd.DataFrame:
    """The numbers of the table that any run is behind."""
    return tables.table_of(Plan(config), "table1").rows.query("n_wanted > 0")


def test_tables_and_claims_show_shipped_seeds_with_those_trained_here(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    before = shown(reduced)
    finding = find(Plan(reduced))[0].scales[1]
    export_reproduced(Plan(reduced.model_copy(update={"seeds": [0]})), "table1")
    for cell in project.cells("localscgdam", "table1", reduced):
        without(project, cell, [0])
    both = shown(reduced)
    assert list(both["values"]) == list(before["values"]) and set(both["status"]) == {"finished"}
    assert both["shipped"].all() and list(both["verdict"]) == list(before["verdict"])
    assert all(" reproduced/" in f" {source}" and "results/" in source for source in both["source"])
    assert "‡: not all seeds trained here." in text(reduced)
    merged = find(Plan(reduced))[0].scales[1]
    assert merged.verdict == finding.verdict and merged.shipped


def test_a_run_trained_here_counts_before_the_shipped_one(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    export_reproduced(Plan(reduced), "table1")
    before = shown(reduced)
    cells = project.cells("localscgdam", "table1", reduced)
    for cell in cells[:2]:
        without(project, cell, [0, 1, 2])
    project.write(cells[0], [run_result(0, cells[0].runs[0].key, {"test_auc": 0.5})])
    bad = run_result(0, cells[1].runs[0].key, {}) | {"status": "diverged", "reason": "loss is nan"}
    project.write(cells[1], [bad])
    row, broken = shown(reduced).iloc[0], shown(reduced).iloc[1]
    assert row["values"] == " ".join(["0:0.5", *before.iloc[0]["values"].split()[1:]]) and row["shipped"]
    assert (broken["status"], broken["n_seeds"]) == ("diverged", 2), "what went wrong here is not hidden"


def test_a_divergence_elsewhere_is_shown_until_that_seed_is_trained_here(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    (cell, *_) = project.cells("localscgdam", "table1", reduced)
    runs = project.runs(cell)
    runs[2] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(cell, runs)
    export_reproduced(Plan(reduced), "table1")
    seen = []
    for seeds in ([], [0, 1], [0, 1, 2]):
        without(project, cell, [0, 1, 2])
        project.write(cell, [run_result(i, cell.runs[i].key, {"test_auc": 0.5}) for i in seeds])
        row = shown(reduced).iloc[0]
        seen.append((row["status"], row["shipped"], row["n_seeds"], row["reason"]))
    bad = "1 of 3 seeds: loss is nan"
    assert seen == [("diverged", True, 2, bad), ("diverged", True, 2, bad), ("finished", False, 3, "")]


@pytest.mark.parametrize("shipped_reached", [True, False])
def test_seeds_that_miss_a_target_join_those_that_were_shipped(
    project: Project, reduced: Config, shipped_reached: bool
) -> None:
    """Seed 0 is shipped, 1 and 2 are measured here; those that miss an AUC of 0.9 end at 0.8 and their seed."""
    project.change(tables={"table1": {"metrics": ["rounds_to_test_auc_0.9"]}})
    cells = project.cells("localscgdam", "table1", reduced)

    def measured(seeds: list[int], reached: bool) -> None:
        for cell in cells:
            runs = [run for run in cell.runs if run.seed in seeds]
            for run in runs:
                curve = project.curve(run.key, 0.9, ("test_auc",), np.random.default_rng(0))
                last = 0.95 if reached else 0.8 + run.seed / 100
                curve.write_text(f"iteration,round,test_auc\n0,0,0.5\n8,2,{last}\n")
            project.write(cell, [run_result(run.seed, run.key, {"test_auc": 0.5}) for run in runs])

    measured([0], shipped_reached)
    export_reproduced(Plan(reduced), "table1")
    for cell in cells:
        without(project, cell, [0])
    measured([1, 2], not shipped_reached)
    after = shown(reduced)
    values, note = ("0:2 1:inf 2:inf", "2 of 3 seeds: best 0.81; best 0.82")
    if not shipped_reached:
        values, note = "0:inf 1:2 2:2", "1 of 3 seeds: best 0.8"
    assert set(after["values"]) == {values} and set(after["reason"]) == {note}
    assert set(after["status"]) == {"not reached"} and set(after["n_seeds"]) == {3}
