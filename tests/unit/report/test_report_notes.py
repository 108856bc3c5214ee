"""What a table says below it of trouble, missing numbers, doubtful data, and of all its numbers together."""

from __future__ import annotations

import re

import pytest
from report_project import Project, cell_of, line, run_result

from fedbench.report import claims, tables
from fedbench.report.document import WORDS
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


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
    assert "Not run" not in table.markdown() and table.tex().count("--") >= 90 and "0.936" in table.tex()


@pytest.mark.parametrize(("scale", "marked"), [("paper", True), ("reduced", False)])
def test_verdicts_on_values_from_the_edge_of_a_grid_are_marked(scale: str, marked: bool) -> None:
    """On reference results: tuning for scale paper chose such values, that for reduced none."""
    table = tables.table_of(Plan(Config(scale=scale), "localscgdam"), "table1")
    symbols = [entry.symbol for entry in table.shown.entries if entry.symbol]
    assert len(symbols) >= 12 and all(symbol.endswith("°") == marked for symbol in symbols)
    assert ("°: a tuned value" in table.markdown()) == marked


@pytest.mark.parametrize("target", ["climb/table2", "arena/leaderboard"])
def test_few_words_stand_below_a_table_and_no_note_is_lost(target: str) -> None:
    study, name = target.split("/")
    table = tables.table_of(Plan(Config(scale="reduced"), study), name)
    below = [note for note in table.below if note != table.shown.left]
    assert len(" ".join(below).split()) <= WORDS
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
        assert (f"do not compare: {cells[0].dataset} (" in said) == ("npy:two" in versions)


def test_means_over_runs_of_two_machines_are_counted_among_the_notes(
    project: Project, reduced: Config
) -> None:
    cells = project.cells("localscgdam", "table1", reduced)
    for cell, other in zip(cells[:2], ("2 cores", "H100"), strict=True):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        runs[0]["provenance"] |= {"hardware": other}
        project.write(cell, runs)
        notes = tables.table_of(Plan(reduced), "table1").details
        assert any("1 of 2 numbers" in note and "2 cores" in note for note in notes) == (other == "H100")


def test_names_in_the_published_file_that_fit_nothing_are_said(project: Project, reduced: Config) -> None:
    project.change(tables={"table1": {"published": "mine.csv"}})
    (project.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.5\nCoDDA,test_auc,0.5\n")
    said = tables.table_of(Plan(reduced), "table1").markdown()
    assert "no name of this study: method CoDDA." in said


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
