"""Tables with two numbers in a cell, methods as columns and doubtful print: climb's."""

from __future__ import annotations

import re
from collections.abc import Callable

from report_project import Project, climb, run_result

from fedbench.report import tables
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

Fill = Callable[[str, str], Project]


def test_two_numbers_in_a_cell_and_doubtful_print(filled: Fill, reduced: Config) -> None:
    project, paper = filled("climb", "table2"), Config(scale="paper")
    project.fill("climb", "table2", paper, ("test_minority_accuracy", "test_overall_accuracy"))
    table = tables.table_of(Plan(paper, "climb"), "table2")
    markdown = table.markdown()
    row = table.markdown().splitlines()
    at = next(i for i, text in enumerate(row) if "ρ = 10 · MNIST · minority classes = 3" in text)
    assert "0.6674†" in row[at + 3] and re.search(r"\(0\.9069\)", row[at + 4])
    assert "0.0402" in markdown and "AMBIGUOUS" in markdown
    assert "Minority accuracy (overall accuracy): mean ±" in markdown
    stacked = table.terminal()
    tex = table.tex()  # too wide to stand side by side
    assert r" & paper & 0.0229 (0.5734) & \textbf{0.5575} (\textbf{0.6076}) & 0 (0.4836)" in tex
    assert r" & paper & --$^\dagger$ (0.5534) & \textbf{0.0402}$^\dagger$" in tex
    assert max(map(len, stacked.splitlines())) <= 120
    assert re.search(r"\n +± +(0\.\d{4} \(0\.\d{4}\) +){4}\(−?\d\.\d\d\)\n", stacked)  # then tau


def test_a_trouble_of_both_metrics_is_said_once(filled: Fill, reduced: Config) -> None:
    project = filled("climb", "table2")
    cell = project.cells("climb", "table2", reduced)[0]
    runs = [run_result(s.seed, s.key, {}, "diverged" if s.seed else "finished") for s in cell.runs]
    project.write(cell, runs)
    tex = tables.table_of(Plan(reduced, "climb"), "table2").tex()
    assert r"\quad $\alpha$ = 0 & ours & diverged 2/3 & 0." in tex


def test_without_published_numbers_there_is_one_column_and_no_empty_rows(
    filled: Fill, reduced: Config
) -> None:
    project = filled("climb", "table2")
    paper = climb()
    paper["tables"]["table2"]["published"] = None
    project.save_paper("climb", paper)
    table = tables.table_of(Plan(reduced, "climb"), "table2")
    lines = table.markdown().splitlines()
    assert lines[2].split() == [
        "|",
        "α",
        "|",
        "Baseline",
        "|",
        "CLIMB",
        "|",
        "Ratio-Loss",
        "|",
        "Focal-Loss",
        "|",
    ]
    assert "* Not run: CIFAR10 (96 of 192 numbers)." in lines
    assert "verdict" not in table.markdown() and "Δ" not in table.tex()
