"""What a table says below it of trouble, missing numbers and doubtful data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_project import Project, localscgdam, run_result
from table_forms import cell_of, line

from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.tables import build as tables
from fedbench.report.tables.document import WORDS

ROOT = Path(__file__).parents[3]


def test_trouble_stays_visible_and_never_ranks(tiny: Project) -> None:
    config = Config(scale="reduced")
    part = cell_of(tiny, config, "FashionMNIST", "LocalSGDM_RL", 8)
    tiny.write(part, [run_result(part.runs[0].seed, part.runs[0].key, {"test_auc": 0.999})])
    table = tables.make(Plan(config), "table1")
    text = table.markdown()
    row = line(text, "LocalSGDM_RL", "**FashionMNIST**")
    assert "diverged 1/3" in row and "0.999 (1/3)" in row and "**0.999**" not in row
    assert "Diverged: FashionMNIST, p = 4, LocalSGDM_RL: 1 of 3 seeds: loss is nan at iteration 8." in text
    assert "Incomplete: FashionMNIST, p = 8, LocalSGDM_RL: 1 of 3 seeds are done." in text
    verdicts = table.rows.set_index(["dataset", "method", "p"])["verdict"]
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 4] == "diverged"
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 8] == "incomplete"
    tiny.write(part, [])
    text = tables.make(Plan(config), "table1").markdown()
    assert "–: not run." in text, "a dash beside numbers"


def test_what_was_not_run_is_one_line_in_every_form(tiny: Project) -> None:
    table = tables.make(Plan(Config(scale="reduced")), "table1")
    for form in (table.tex(), table.markdown(), table.terminal()):
        lines = [found for found in form.splitlines() if "Melanoma" in found]
        assert len(lines) == 1 and "Not run: Melanoma (6 of 12 numbers)." in lines[0]
    printed = table.rows.set_index(["dataset", "method", "p"])["published_mean"]
    assert printed["Melanoma", "LocalSGDM_RL", 4] == "0.737", "the CSV has all that is published"
    assert "Verdicts: 4 inconclusive, 1 diverged." in table.markdown()


def test_a_table_of_which_nothing_was_run_is_a_caption_and_a_line(project: Project, reduced: Config) -> None:
    table = tables.make(Plan(reduced), "table1")
    assert "tabular" not in table.tex() and "|" not in table.markdown()
    left = "Not run: CATvsDOG, CIFAR10, CIFAR100, STL10, FashionMNIST, Melanoma (90 of 90 numbers)."
    assert left in table.tex() and left in table.markdown() and left in " ".join(table.terminal().split())


def test_long_notes_go_to_the_end(tiny: Project) -> None:
    table = tables.make(Plan(Config(scale="reduced")), "table1")
    below, _, end = table.tex().partition("\\end{table}")
    assert "tolerance" in below and "hyper-parameters" not in below
    assert all(line.startswith("% note: ") for line in end.split("\n") if line) and "hyper-parameters" in end


@pytest.mark.parametrize("target", ["localscgdam/table1", "climb/table2", "cycp/table1", "arena/leaderboard"])
def test_few_words_stand_below_a_table_and_no_note_is_lost(target: str) -> None:
    study, name = target.split("/")
    table = tables.make(Plan(Config(scale="reduced"), study), name)
    below = [note for note in table.below if note != table.shown.left]
    assert 20 < len(" ".join(below).split()) <= WORDS
    assert {*below, *table.rest} == {*table.notes, *table.details} and table.notes[0] in below
    assert below == [note for note in table.notes if note in below], "in their order"


def test_numbers_from_two_versions_of_a_dataset_are_said_not_to_compare(
    project: Project, reduced: Config
) -> None:
    """The same names and keys do not mean the same files, where those come from behind an account."""
    cells = project.cells("localscgdam", "table1", reduced)
    for cell, versions in zip(cells[:2], (("one", "one"), ("one", "two")), strict=True):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        for run, version in zip(runs, versions, strict=False):
            run["provenance"] |= {"data": version}
        project.write(cell, runs)
        said = tables.make(Plan(reduced), "table1").markdown()
        assert ("prepared differently" in said) == ("two" in versions)
    assert f"cannot be compared: {cells[0].dataset}." in said


def test_names_in_the_published_file_that_fit_nothing_are_said(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table1"]["published"] = "mine.csv"
    project.save_paper("localscgdam", paper)
    (project.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.5\nCoDDA,test_auc,0.5\n")
    said = tables.make(Plan(reduced), "table1").markdown()
    assert "no name of this study: method CoDDA." in said


def test_training_that_is_stuck_is_named(project: Project, reduced: Config) -> None:
    """Average precision that stays the same to the last digit; three equal values at 1 are a perfect ranking."""
    paper = localscgdam()
    paper["tables"]["table1"] |= {"metrics": ["test_ap"], "published": None}
    project.save_paper("localscgdam", paper)
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
    text = tables.make(Plan(reduced), "table1").markdown()
    assert "the last 3 evaluations: training is stuck: CIFAR10, p = 4, CoDA: seeds 0, 1, 2." in text


def test_a_run_that_learned_nothing_is_flagged_in_its_cell(project: Project, reduced: Config) -> None:
    """A mean of 0.98, 0.98 and a constant 0.5 looks like a poor method; it is a good one that failed once."""
    project.finish(cell_of(project, reduced, "CIFAR10", "CoDA"), [0.98, 0.5, 0.98])
    project.finish(cell_of(project, reduced, "CIFAR10", "LocalSGDM"), [0.98, 0.500001, 0.97])
    text = tables.make(Plan(reduced), "table1").markdown()
    assert "**0.820**±0.277 (1/3 constant)" in line(text, "CoDA", "**CIFAR10**")
    assert "constant)" not in line(text, "LocalSGDM ", "**CIFAR10**")
    assert "nothing was learned: CIFAR10, p = 4, CoDA: seed 1." in text
