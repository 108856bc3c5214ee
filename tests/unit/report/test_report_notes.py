"""What a table says below it of trouble, missing numbers, doubtful data, and of all its numbers together."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_project import Project, cell_of, line, run_result

from fedbench.report import claims, tables
from fedbench.report.document import WORDS
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

ROOT = Path(__file__).parents[3]


def test_trouble_stays_visible_and_never_ranks(tiny: Project) -> None:
    config = Config(scale="reduced")
    part = cell_of(tiny, config, "FashionMNIST", "LocalSGDM_RL", 8)
    tiny.write(part, [run_result(part.runs[0].seed, part.runs[0].key, {"test_auc": 0.999})])
    table = tables.table_of(Plan(config), "table1")
    text = table.markdown()
    row = line(text, "LocalSGDM_RL", "**FashionMNIST**")
    assert "diverged 1/3" in row and "0.999 (1/3)" in row and "**0.999**" not in row
    assert "Diverged: FashionMNIST, p = 4, LocalSGDM_RL: 1 of 3 seeds: loss is nan at iteration 8." in text
    assert "Incomplete: FashionMNIST, p = 8, LocalSGDM_RL: 1 of 3 seeds are done." in text
    verdicts = table.rows.set_index(["dataset", "method", "p"])["verdict"]
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 4] == "diverged"
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 8] == "incomplete"
    tiny.write(part, [])
    text = tables.table_of(Plan(config), "table1").markdown()
    assert "–: not run." in text, "a dash beside numbers"


def test_what_was_not_run_is_one_line_in_every_form(tiny: Project) -> None:
    table = tables.table_of(Plan(Config(scale="reduced")), "table1")
    for form in (table.tex(), table.markdown(), table.terminal()):
        lines = [found for found in form.splitlines() if "Melanoma" in found]
        assert len(lines) == 1 and "Not run: Melanoma (6 of 12 numbers)." in lines[0]
    printed = table.rows.set_index(["dataset", "method", "p"])["published_mean"]
    assert printed["Melanoma", "LocalSGDM_RL", 4] == "0.737", "the CSV has all that is published"
    assert "Verdicts: 4 inconclusive, 1 diverged." in table.markdown()


def test_where_nothing_was_run_print_is_laid_out_with_blanks(project: Project, reduced: Config) -> None:
    table = tables.table_of(Plan(reduced), "table1")
    entries = table.shown.entries
    assert len(entries) == 90 and all(entry.value == "–" and entry.printed for entry in entries)
    assert "Not run" not in table.markdown() and "–: not run" in table.markdown()
    assert table.tex().count("--") >= 90 and "0.936" in table.tex()


@pytest.mark.parametrize(("scale", "marked"), [("paper", True), ("reduced", False)])
def test_verdicts_on_values_from_the_edge_of_a_grid_are_marked(scale: str, marked: bool) -> None:
    """Tuning for scale paper chose 16 such values, that for reduced none."""
    table = tables.table_of(Plan(Config(scale=scale), "localscgdam"), "table1")
    symbols = [entry.symbol for entry in table.shown.entries if entry.symbol]
    assert len(symbols) >= 12 and all(symbol.endswith("°") == marked for symbol in symbols)
    assert ("°: a tuned value" in table.markdown()) == marked


def test_long_notes_go_to_the_end(tiny: Project) -> None:
    table = tables.table_of(Plan(Config(scale="reduced")), "table1")
    below, _, end = table.tex().partition("\\end{table}")
    assert "overlaps the limit" in below and "hyper-parameters" not in below
    assert all(line.startswith("% note: ") for line in end.split("\n") if line) and "hyper-parameters" in end


@pytest.mark.parametrize("target", ["localscgdam/table1", "climb/table2", "cycp/table1", "arena/leaderboard"])
def test_few_words_stand_below_a_table_and_no_note_is_lost(target: str) -> None:
    study, name = target.split("/")
    table = tables.table_of(Plan(Config(scale="reduced"), study), name)
    below = [note for note in table.below if note != table.shown.left]
    assert 20 < len(" ".join(below).split()) <= WORDS
    assert {*below, *table.rest} == {*table.notes, *table.details} and table.notes[0] in below
    assert below == [note for note in table.notes if note in below], "in their order"


def test_numbers_from_two_versions_of_a_dataset_are_said_not_to_compare(
    project: Project, reduced: Config
) -> None:
    """The same names and keys do not mean the same files, where those come from behind an account."""
    cells = project.cells("localscgdam", "table1", reduced)
    for cell, versions in zip(cells[:2], (("npy:one", "npy:one"), ("npy:one", "npy:two")), strict=True):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        for run, version in zip(runs, versions, strict=False):
            run["provenance"] |= {"data": version}
        project.write(cell, runs)
        said = tables.table_of(Plan(reduced), "table1").markdown()
        assert ("prepared differently" in said) == ("npy:two" in versions)
    assert f"cannot be compared: {cells[0].dataset}." in said


def test_means_over_several_machines_are_counted_below_the_table(project: Project, reduced: Config) -> None:
    cells = project.cells("localscgdam", "table1", reduced)
    for cell, machines in zip(cells[:3], ("ABA", "AAA", "BBB"), strict=True):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        for run, machine in zip(runs, machines, strict=True):
            run["provenance"] = run["provenance"] | {"hardware": machine}
        project.write(cell, runs)
    note = "1 of 3 numbers are of runs on several machines, which round differently (A, B)."
    assert f"* {note}\n" in tables.table_of(Plan(reduced), "table1").markdown()
    project.finish(cells[0], [0.9] * 3)
    assert "several machines" not in tables.table_of(Plan(reduced), "table1").markdown()


def test_names_in_the_published_file_that_fit_nothing_are_said(project: Project, reduced: Config) -> None:
    project.change(tables={"table1": {"published": "mine.csv"}})
    (project.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.5\nCoDDA,test_auc,0.5\n")
    said = tables.table_of(Plan(reduced), "table1").markdown()
    assert "no name of this study: method CoDDA." in said


def test_training_that_is_stuck_is_named(project: Project, reduced: Config) -> None:
    """Average precision that stays the same to the last digit; three equal values at 1 are a perfect ranking."""
    project.change(tables={"table1": {"metrics": ["test_ap"], "published": None}})
    for method, tail in {
        "CoDA": [0.4, 0.4, 0.4],
        "LocalSGDAM": [0.4, 0.41, 0.4],
        "LocalSGDM": [1.0] * 3,
    }.items():
        cell = cell_of(project, reduced, "CIFAR10", method)
        for run in cell.runs:
            path = project.curve(run.key, 0.9, ("test_ap",), np.random.default_rng(0))
            curve = pd.read_csv(path)
            curve.loc[curve.index[-3:], "test_ap"] = tail
            curve.to_csv(path, index=False)
        project.finish(cell, [tail[-1]] * 3, "test_ap")
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "the last 3 evaluations: training is stuck: CIFAR10, p = 4, CoDA: seeds 0, 1, 2." in text


def test_a_run_that_learned_nothing_is_flagged_in_its_cell(project: Project, reduced: Config) -> None:
    """A mean of 0.98, 0.98 and a constant 0.5 looks like a poor method; it is a good one that failed once."""
    project.finish(cell_of(project, reduced, "CIFAR10", "CoDA"), [0.98, 0.5, 0.98])
    project.finish(cell_of(project, reduced, "CIFAR10", "LocalSGDM"), [0.98, 0.500001, 0.97])
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "**0.820**±0.277 (1/3 constant)" in line(text, "CoDA", "**CIFAR10**")
    assert "constant)" not in line(text, "LocalSGDM ", "**CIFAR10**")
    assert "nothing was learned: CIFAR10, p = 4, CoDA: seed 1." in text


def test_own_methods_and_rivals_are_counted_apart(project: Project, reduced: Config) -> None:
    """FashionMNIST at p = 4, in print .980 (LocalSCGDAM), .976 (CoDA), .980 (LocalSGDM_RL, at p = 4)."""
    project.change(proposes=["LocalSCGDAM"])
    values = {"LocalSCGDAM": 0.979, "CoDA": 0.978, "LocalSGDM": 0.999}
    for cell in project.cells("localscgdam", "table1", reduced):
        if cell.dataset == "FashionMNIST" and cell.setting["p"] == 4 and cell.method in values:
            project.finish(cell, [values[cell.method] + noise for noise in (-1e-4, 0, 1e-4)])
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "Verdicts: LocalSCGDAM 1 match; rivals 1 match, 1 above." in text
    # .979 and .978 within .01 of all other prints but LocalSGDM's .963: of 8 comparisons with another method 6
    assert "6 of the 8 comparisons of a match" in text


def test_bounds_give_no_verdict() -> None:
    config = load_config(overrides={"scale": "reduced", "paper": "fcsg"})
    table = tables.table_of(Plan(config), "table1")
    printed = table.rows[table.rows["published_mean"] != ""]
    assert set(printed["verdict"]) == {"bound"} and printed["difference"].isna().all()
    text = table.markdown()
    assert "The paper gives bounds: 6 of 6 means lie within theirs." in text
    assert "τ" not in text and "≈" not in text


def test_no_word_from_elsewhere_begins_a_tag_in_markdown(project: Project, reduced: Config) -> None:
    """Labels, like the sites of a file and the hardware of imported runs."""
    project.change(datasets={"FashionMNIST": {"label": "<img src=x> \\<b>"}})
    project.fill("localscgdam", "table1", reduced)
    for cell in project.cells("localscgdam", "table1", reduced)[:1]:
        runs = [run_result(run.seed, run.key, {"test_auc": 0.9}) for run in cell.runs]
        project.write(cell, [run | {"status": "diverged", "reason": "<script>"} for run in runs])
    plan = Plan(reduced)
    for text in (tables.table_of(plan, "table1").markdown(), claims.claim_table(plan).markdown()):
        assert not re.search(r"(?<!\\)(\\\\)*<", text)
    text = tables.table_of(plan, "table1").markdown()
    assert "img src" in text and "script" in text
