"""Runs under ``reproduced/``: shown where they were not trained here, marked, and only while their keys are right."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pandas as pd
import pytest
from report_project import Project, run_result, table_of

from fedbench.errors import UserError
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


def rows_of_file(project: Project) -> pd.DataFrame:
    return pd.read_csv(project.root / FILE, dtype=str, keep_default_na=False)


def first(project: Project, config: Config) -> Cell:
    return project.cells("localscgdam", "table1", config)[0]


def shown(config: Config) -> pd.DataFrame:
    """The numbers of the table that any run is behind."""
    return table_of(config).rows.query("n_wanted > 0")


def test_shipped_numbers_are_shown_and_marked(filled: Fill, reduced: Config) -> None:
    project = filled("localscgdam", "table1")
    trained = table_of(reduced)
    export_reproduced(Plan(reduced), "table1")
    shutil.rmtree(project.root / "results")
    table = table_of(reduced)
    for name in ("verdict", "values"):
        assert (trained.rows[name] == table.rows[name]).all()
    means = [of.rows["mean"].to_numpy() for of in (trained, table)]
    assert means[1] == pytest.approx(means[0], abs=1e-6, nan_ok=True)
    for row in table.rows.query("shipped").itertuples():
        name, _, lines = row.source.partition(":")
        at, last = map(int, lines.split("-"))
        read = [line.split(",") for line in (project.root / name).read_text().splitlines()[at - 1 : last]]
        assert all({row.dataset, row.method, str(row.p), "test_auc"} <= {*line} for line in read)
        assert [line[4] for line in read] == ["0", "1", "2"], "the lines of the file that it was read from"
    assert not trained.rows["shipped"].any() and table.rows["shipped"].sum() == 30
    said = table.markdown()
    assert said.count("‡") == 31 and "‡" not in trained.markdown() and "‡: not trained here." in said
    assert "Scale reduced: nothing trained here" in said and r"$^\ddagger$" in table.tex()
    assert not table_of(reduced.model_copy(update={"shipped": False})).rows["shipped"].any()


def test_what_was_trained_or_failed_here_comes_first(shipped: Project, reduced: Config) -> None:
    better, failed, *_ = shipped.cells("localscgdam", "table1", reduced)
    shipped.finish(better, [0.5, 0.5, 0.5])
    log = shipped.root / "logs/train/reduced" / f"{failed.name}.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: the disk is full\n")
    rows = shown(reduced)
    assert rows["shipped"].sum() == 28 and rows.loc[rows["mean"] == 0.5, "shipped"].tolist() == [False]
    (bad,) = rows[rows["status"] == "failed"].to_dict("records")
    assert bad["method"] == failed.method and not bad["shipped"] and "disk is full" in bad["reason"]


def test_another_scale_shows_them_as_what_they_are(shipped: Project, reduced: Config) -> None:
    demo = Config(scale="demo")
    said, rows = table_of(demo).markdown(), table_of(demo).rows
    assert "**CIFAR10 (‡ scale reduced)**" in said
    assert "‡: trained elsewhere, at scale reduced." in said.splitlines()[0], "the caption names each scale"
    assert set(rows.loc[rows["shipped"], "scale"]) == {"reduced"}
    shipped.finish(first(shipped, reduced), [0.5, 0.5, 0.5])
    assert table_of(demo).rows.equals(rows), "what ran there here is no other"
    assert "(‡ scale reduced)" not in table_of(Config(scale="paper")).markdown(), (
        "its own cells are to be run"
    )


def test_methods_of_a_place_are_shown_at_one_scale(shipped: Project) -> None:
    """A scale nearer to the paper that lacks a method gives way to one that has them all."""
    paper = Config(scale="paper", seeds=[0], datasets=["CIFAR10"])
    shipped.finish_each(paper, lambda c: None if (c.setting["p"], c.method) == (4, "CoDA") else [0.9])
    export_reproduced(Plan(paper), "table1")
    shutil.rmtree(shipped.root / "results")
    rows = table_of(Config(scale="demo")).rows.query("dataset == 'CIFAR10'")
    scales = {p: set(part["scale"]) for p, part in rows.groupby("p")}
    assert scales == {4: {"reduced"}, 8: {"paper"}, 16: {"paper"}} and rows["shipped"].all()


def test_a_changed_configuration_has_no_shipped_numbers(shipped: Project, reduced: Config) -> None:
    shipped.change(methods={"CoDA": {"params": {"lr": 0.123}}})
    rows = table_of(reduced).rows
    assert not rows.loc[rows["method"] == "CoDA", "shipped"].any() and rows["shipped"].sum() == 24


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        *(("value", "x", "x"), ("pace", "1 h", "1 h"), ("seed", "x", "x"), ("seed", "", "column 4")),
        *(("value", "", "{line}"), ("value", "1.2", "{line}"), ("value", "-0.1", "{line}")),
        *(("metric", "", "{line}"), ("sign", "lost", "{line}"), ("status", "done", "{line}")),
        *(("status", "diverged", "{line}"), ("seed", "-1", "{line}")),
    ],
)
def test_a_cell_that_no_export_writes_is_named(
    shipped: Project, reduced: Config, column: str, value: str, message: str
) -> None:
    rows = rows_of_file(shipped)
    line = rows.index[rows["metric"] == "test_auc"][3]
    rows.loc[line, column] = value
    rows.to_csv(shipped.root / FILE, index=False)
    with pytest.raises(UserError, match=r"localscgdam\.csv.*" + message.format(line=f":{line + 2}: ")):
        table_of(reduced)


def test_two_values_of_a_run_and_a_file_of_another_form_are_named(shipped: Project, reduced: Config) -> None:
    """The first as after a merge that kept both sides."""
    path = shipped.root / FILE
    before = path.read_text()
    lines = before.splitlines()
    at = next(n for n, line in enumerate(lines) if ",test_auc,0.8" in line)
    path.write_text("\n".join([*lines, lines[at].replace(",test_auc,0.8", ",test_auc,0.7")]) + "\n")
    both = rf"\.csv:{len(lines) + 1}: .*test_auc.* 0\.7\d+.*\.csv:{at + 1} .*0\.8\d+"
    with pytest.raises(UserError, match=both):
        table_of(reduced)
    path.write_text(before.replace(",seed,", ",repeat,", 1))
    with pytest.raises(UserError, match=r"localscgdam\.csv lacks the column seed.*`fedbench export`"):
        table_of(reduced)


def test_a_changed_key_and_a_seed_of_its_own_do_not_count(shipped: Project, reduced: Config) -> None:
    """A row is found by the key of today; other seeds of a cell that was not trained here count too."""
    rows, cell = rows_of_file(shipped), first(shipped, reduced)
    of_cell = (rows["dataset"] == cell.dataset) & (rows["method"] == cell.method) & (rows["p"] == "4")
    rows.loc[of_cell & (rows["seed"] == "1"), "key"] = "0" * 16
    more = rows[of_cell & (rows["seed"] == "2")]
    more = more.assign(seed="7", key=cell.runs[0].seeded(7).key, value="0.25")
    pd.concat([rows, more]).to_csv(shipped.root / FILE, index=False)
    assert re.findall(r"(\d):", shown(reduced).iloc[0]["values"]) == ["0", "2", "7"]
    shipped.write(cell, [run_result(0, cell.runs[0].key, {"test_auc": 0.5})])
    assert re.findall(r"(\d):", shown(reduced).iloc[0]["values"]) == ["0", "2"], "with ours the planned alone"


def test_a_cell_is_shipped_with_all_metrics_that_are_asked_for_or_not_at_all(
    shipped: Project, reduced: Config
) -> None:
    rows, cell = Shipped(Plan(reduced)), first(shipped, reduced)
    assert rows.has(cell, ["test_auc"]) and not rows.has(cell, ["test_auc", "test_ap"])


def without(project: Project, cell: Cell, seeds: list[int]) -> None:
    """Take some seeds of a cell away, as if another machine had trained them."""
    others = [run for run in project.runs(cell) if run["seed"] not in seeds]
    (project.root / cell.path).unlink()
    project.forget([run for run in cell.runs if run.seed in seeds])
    if others:
        project.write(cell, others)


def test_tables_and_claims_show_shipped_seeds_with_those_trained_here(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    before = shown(reduced)
    finding = find(Plan(reduced))[0].scales[1]
    export_reproduced(Plan(reduced.model_copy(update={"seeds": [0]})), "table1")
    for cell in project.cells("localscgdam", "table1", reduced):
        without(project, cell, [0])
    both, merged = shown(reduced), find(Plan(reduced))[0].scales[1]
    for name in ("values", "verdict", "status"):
        assert list(both[name]) == list(before[name])
    assert both["shipped"].all() and merged.verdict == finding.verdict and merged.shipped
    assert all(" reproduced/" in f" {source}" and "results/" in source for source in both["source"])
    assert "‡: not all seeds trained here." in table_of(reduced).markdown()


def test_a_run_trained_here_counts_before_the_shipped_one(project: Project, reduced: Config) -> None:
    """One that diverged elsewhere, too, until that seed is trained here."""
    project.fill("localscgdam", "table1", reduced)
    good, bad, lost, *_ = project.cells("localscgdam", "table1", reduced)
    runs = project.runs(lost)
    project.write(lost, [*runs[:2], runs[2] | {"status": "diverged", "reason": "loss is nan"}])
    export_reproduced(Plan(reduced), "table1")
    before = shown(reduced).iloc[0]["values"].split()
    for cell in (good, bad, lost):
        without(project, cell, [0, 1, 2])
    project.write(good, [run_result(0, good.runs[0].key, {"test_auc": 0.5})])
    project.write(bad, [run_result(0, bad.runs[0].key, {}, "diverged", "loss is nan")])
    row, broken = shown(reduced).iloc[0], shown(reduced).iloc[1]
    assert row["values"] == " ".join(["0:0.5", *before[1:]]) and row["shipped"]
    assert (broken["status"], broken["n_seeds"]) == ("diverged", 2), "what went wrong here is not hidden"
    seen = []
    for seeds in ([], [0, 1], [0, 1, 2]):
        project.write(lost, [run_result(i, lost.runs[i].key, {"test_auc": 0.5}) for i in seeds])
        seen.append(shown(reduced).iloc[2][["status", "shipped", "n_seeds", "reason"]].tolist())
    told = ["diverged", True, 2, "1 of 3 seeds: loss is nan"]
    assert seen == [told, told, ["finished", False, 3, ""]]


@pytest.mark.parametrize(
    ("reached", "values", "note"),
    [
        (True, "0:2 1:inf 2:inf", "2 of 3 seeds: best 0.81; best 0.82"),
        (False, "0:inf 1:2 2:2", "1 of 3 seeds: best 0.8"),
    ],
)
def test_seeds_that_miss_a_target_join_those_that_were_shipped(
    project: Project, reduced: Config, reached: bool, values: str, note: str
) -> None:
    """Seed 0 is shipped, 1 and 2 are measured here; those that miss an AUC of 0.9 end at 0.8 and their seed."""
    project.change(tables={"table1": {"metrics": ["rounds_to_test_auc_0.9"]}})
    cells = project.cells("localscgdam", "table1", reduced)

    def measured(seeds: list[int], reached: bool) -> None:
        for cell in cells:
            runs = [run for run in cell.runs if run.seed in seeds]
            for run in runs:
                last = 0.95 if reached else 0.8 + run.seed / 100
                curve = {"iteration": [0, 8], "round": [0, 2], "test_auc": [0.5, last]}
                project.write_curve(run.key, curve)
            project.write(cell, [run_result(run.seed, run.key, {"test_auc": 0.5}) for run in runs])

    measured([0], reached)
    export_reproduced(Plan(reduced), "table1")
    for cell in cells:
        without(project, cell, [0])
    measured([1, 2], not reached)
    after = shown(reduced)
    assert {*zip(after["values"], after["reason"], strict=True)} == {(values, note)}
    assert set(after["status"]) == {"not reached"} and set(after["n_seeds"]) == {3}
