"""Tables: what stands in them, in which shape, and that LaTeX takes them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_project import METHODS, Project, cell_of, line, localscgdam, run_result

from fedbench.errors import UserError
from fedbench.report import claims, tables
from fedbench.report.figures import build as figures
from fedbench.report.text import MARKDOWN
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

GOLDEN = Path(__file__).parents[2] / "golden"
Fill = Callable[[str, str], Project]


def test_golden(tiny: Project) -> None:
    """The tiny table in all its forms; with FEDBENCH_GOLDEN=write in the environment they become the golden ones."""
    table = tables.table_of(Plan(Config(scale="reduced")), "table1")
    mark = table.provenance["stamp"]
    forms = {"tex": table.tex(), "md": table.markdown(), "txt": table.terminal()}
    forms["csv"] = re.sub(r",[0-9a-f]{16}$", ",KEY", table.csv(), flags=re.MULTILINE)
    for suffix, form in forms.items():
        golden = GOLDEN / f"report_table.{suffix}"
        if os.environ.get("FEDBENCH_GOLDEN") == "write":
            golden.write_text(form.replace(mark, "STAMP"), encoding="utf-8")
        assert form.replace(mark, "STAMP") == golden.read_text(encoding="utf-8"), golden


def test_best_is_bold_on_each_side_and_equal_digits_tie(project: Project, reduced: Config) -> None:
    values = {
        "LocalSCGDAM": 0.98041,
        "CoDA": 0.97959,
        "LocalSGDAM": 0.9790,
        "LocalSGDM": 0.5,
        "LocalSGDM_RL": 0.6,
    }
    for method, value in values.items():
        project.finish(cell_of(project, reduced, "FashionMNIST", method), [value] * 3)
    text = tables.table_of(Plan(reduced), "table1").markdown()
    rows = {m: line(text, m, "**FashionMNIST**").split("|")[2:4] for m in values}
    assert [m for m, (ours, _) in rows.items() if "**" in ours] == ["LocalSCGDAM", "CoDA"]
    assert [m for m, (_, paper) in rows.items() if "**" in paper] == ["LocalSCGDAM", "LocalSGDM_RL"]


@pytest.mark.parametrize(("number", "bold"), [("0.878‡", "**0.878**‡"), ("12.5 %", "**12.5** %"), ("∞", "∞")])
def test_marks_behind_a_best_number_are_not_bold(number: str, bold: str) -> None:
    """Bold that ends between a mark and ± is none in GitHub's Markdown."""
    assert MARKDOWN.best(number) == bold


def test_columns_without_a_number_are_left_out(project: Project, reduced: Config) -> None:
    project.change(tables={"table1": {"rows": ["method"], "columns": ["p", "dataset"]}})
    for cell in project.cells("localscgdam", "table1", reduced):
        if cell.dataset == "CIFAR10" and cell.setting["p"] != 8 and cell.method != "CoDA":
            project.finish(cell, [0.9] * 3)
    table = tables.table_of(Plan(reduced), "table1")
    assert table.shown.headers == [[("p = 4", 1), ("p = 16", 1)], [("CIFAR10", 1), ("CIFAR10", 1)]]
    assert [row.label for row in table.shown.rows] == [name for name in METHODS if name != "CoDA"]
    assert table.shown.left.endswith("(82 of 90 numbers).")


def test_a_spread_of_nothing_counts_as_the_step_of_the_metric(project: Project) -> None:
    """Two seeds at 0, where no two values are closer than 0.02: the interval has the width of rounding to that."""
    config = Config(scale="reduced", seeds=[0, 1])
    for method, values in {"CoDA": [0.0, 0.0], "LocalSGDM": [0.1, 0.12], "LocalSGDAM": [0.3, 0.5]}.items():
        project.finish(cell_of(project, config, "FashionMNIST", method), values)
    rows = (
        tables.table_of(Plan(config), "table1").rows.set_index(["dataset", "method", "p"]).loc["FashionMNIST"]
    )
    of_step, of_values = (6.313752 * s * (1 / 2 + 1) ** 0.5 for s in (0.02 * (2 / 12) ** 0.5, 0.2 / 2**0.5))
    assert rows.loc[("CoDA", 4), "half_width"] == pytest.approx(of_step, rel=1e-5)
    assert rows.loc[("LocalSGDAM", 4), "half_width"] == pytest.approx(of_values, rel=1e-5)
    assert rows.loc[("CoDA", 4), "std"] == 0.0, "what is shown is what was measured"


def test_one_seed_prints_no_spread(project: Project) -> None:
    config = Config(scale="reduced", seeds=[0])
    project.fill("localscgdam", "table1", config)
    text = tables.table_of(Plan(config), "table1").markdown()
    assert "Test AUC: one seed." in text and "Scale reduced: 1 seed, 100 iterations." in text
    row = line(text, "CoDA", "**CIFAR10**")
    assert "±" not in row and "↓¹" in row
    assert "below (one seed)" in text and "¹: one seed" in text


def test_the_same_inputs_give_the_same_bytes(filled: Fill, reduced: Config) -> None:
    filled("localscgdam", "table1")
    paths = tables.save_table(Plan(reduced), "table1")
    assert [path.name for path in paths] == [
        f"table1.{form}" for form in ("tex", "csv", "md", "json", "macros.tex")
    ]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in tables.save_table(Plan(reduced), "table1")] == first
    assert not list(paths[0].parent.glob("*.part"))
    origin = json.loads(first[3])
    assert origin["commits"] == ["0123456789ab"] and len(origin["cells"]) == 30
    assert origin["training_seconds"] == 30 * 3 * 1.5


def test_users_own_numbers_methods_and_datasets(project: Project, reduced: Config) -> None:
    table = {"datasets": ["FashionMNIST"], "methods": ["my_method_5", "CoDA"], "published": "mine.csv"}
    table |= {"settings": {"p": [4]}, "columns": []}
    project.change(methods={"my_method_5": {"algorithm": "mine"}}, tables={"table1": table})
    rows = "FashionMNIST,my_method_5,test_auc,0.5,0.1,std,3\n"
    (project.root / "mine.csv").write_text("dataset,method,metric,mean,std,spread,n_seeds\n" + rows)
    for cell in project.cells("localscgdam", "table1", reduced):
        project.finish(cell, [0.45, 0.55, 0.65])
    table = tables.table_of(Plan(reduced), "table1")
    row = line(table.tex(), r"\quad my\_method\_5")
    assert r"0.5{\tiny $\pm$0.1}" in row and row.endswith(r"? \\")
    assert "counts as 3 runs with this spread" in table.markdown()
    kinds = table.rows.set_index("method")["verdict"]
    assert kinds["CoDA"] == "no reference"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": ["dataset", "methd"]}, "table1: unknown row or column 'methd'"),
        ({"rows": ["dataset", "method", "p"]}, "p is in rows and columns twice"),
        ({"columns": []}, "p takes several values"),
        ({"metrics": []}, "names no metrics"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    project: Project, reduced: Config, change: dict[str, Any], message: str
) -> None:
    project.change(tables={"table1": change})
    with pytest.raises(UserError, match=re.escape(message)):
        tables.table_of(Plan(reduced), "table1")


def test_a_label_is_what_tables_and_figures_print(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    for name, method in paper["methods"].items():
        method["label"] = f"{name} & co"
    paper["datasets"]["CIFAR10"]["label"] = "CIFAR 10"
    project.save_paper("localscgdam", paper)
    project.fill("localscgdam", "table1", reduced)
    table = tables.table_of(Plan(reduced), "table1")
    said = table.markdown()
    assert "| CoDA & co" in said and "**CIFAR 10**" in said
    assert (
        r"CoDA \& co" in table.tex()
        and r"% needs \usepackage{booktabs,graphicx}" in table.tex().splitlines()[:2]
    )
    assert "CoDA" in {*table.rows["method"]}, "numbers keep the name"
    drawn = figures.drawing_of(Plan(reduced), "figure1")
    labels = [curve.label for panel in drawn.content.panels for curve in panel.curves]
    assert "CoDA & co" in labels and "CoDA" not in labels
    assert " & co) |" in claims.claim_table(Plan(reduced)).markdown(), "the rival that decides"


def test_a_table_that_is_not_there_is_refused(project: Project, reduced: Config) -> None:
    with pytest.raises(UserError, match="unknown table of localscgdam 'table11'"):
        tables.table_of(Plan(reduced), "table11")


def test_of_a_metric_that_falls_the_lowest_is_bold(project: Project, reduced: Config) -> None:
    project.change(tables={"table1": {"metrics": ["test_loss"], "published": None}})
    for method, value in {"CoDA": 0.3, "LocalSGDAM": 0.2, "LocalSGDM": 0.4}.items():
        project.finish(cell_of(project, reduced, "CIFAR10", method), [value] * 3, "test_loss")
    text = tables.table_of(Plan(reduced), "table1").markdown()
    assert "**0.200**" in line(text, "LocalSGDAM ", "**CIFAR10**")
    assert "**0.300**" not in text and "**0.400**" not in text


def test_a_terminal_is_spared_the_long_notes(tiny: Project) -> None:
    table = tables.table_of(Plan(Config(scale="reduced")), "table1")
    short, full = table.terminal(details=False), table.terminal()
    assert table.details and all(line in full for line in short.splitlines()[:-1])
    assert short.splitlines()[-1] == "All notes: fedbench show localscgdam/table1 --notes"


def test_without_a_printed_value_left_there_is_no_column_for_one(project: Project) -> None:
    demo = Config(scale="demo")
    for cell in project.cells("localscgdam", "table1", demo):
        project.finish(cell, [0.9])
    text = tables.table_of(Plan(demo), "table1").markdown()
    assert "| Digits" in text or "**Digits**" in text
    assert "paper" not in next(row for row in text.splitlines() if row.startswith("| Method"))


def test_metrics_are_rows_or_columns_where_the_table_places_them(project: Project, reduced: Config) -> None:
    """A number of each hospital in a column of its own, each with its best method."""
    metrics = ["test_auc", "test_auc@Basel", "test_auc@Lyon"]
    values = {"CoDA": (0.8, 0.9, 0.7), "LocalSGDM": (0.85, 0.75, 0.95)}
    shapes = {}
    for rows, columns in ((["method"], ["metric"]), (["metric"], ["method"])):
        shape = {"rows": rows, "columns": columns, "datasets": ["FashionMNIST"], "settings": {"p": [4]}}
        shape |= {"metrics": metrics, "methods": [*values], "published": None}
        project.change(tables={"table1": shape})
        for cell in project.cells("localscgdam", "table1", reduced):
            first, *sites = values[cell.method]
            project.finish(cell, [first] * 3, **dict(zip(metrics[1:], sites, strict=True)))
        table = tables.table_of(Plan(reduced), "table1")
        shapes[rows[0]] = [
            [(e.value, e.best) for line in row.entries for e in line] for row in table.shown.rows
        ]
        assert table.notes[0].startswith("Test AUC: mean ±")
        assert "(0." not in table.markdown()
    assert shapes["method"] == [
        [("0.800", False), ("0.900", True), ("0.700", False)],
        [("0.850", True), ("0.750", False), ("0.950", True)],
    ]
    assert shapes["metric"] == [list(column) for column in zip(*shapes["method"], strict=True)]


def test_there_is_no_best_and_no_order_where_the_shown_digits_are_the_same(
    project: Project, reduced: Config
) -> None:
    """A class that no method recognises is 0.000 for all; means that differ behind the shown digits are a tie."""
    for place, (method, value) in enumerate(
        [("CoDA", 0.9801), ("LocalSGDAM", 0.9802), ("LocalSGDM", 0.9803)]
    ):
        project.finish(cell_of(project, reduced, "CIFAR10", method), [value + 1e-5 * place] * 3)
    text = tables.table_of(Plan(reduced), "table1").markdown()
    ours = [line(text, name, "**CIFAR10**").split(" | ")[1] for name in ("CoDA", "LocalSGDAM", "LocalSGDM ")]
    assert all("0.980" in cell and "**" not in cell for cell in ours)
    assert "τ" not in text


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
    assert re.search(r"\n +± +(0\.\d{4} \(0\.\d{4}\) *){4}\n", stacked)


def test_a_trouble_of_both_metrics_is_said_once(filled: Fill, reduced: Config) -> None:
    project = filled("climb", "table2")
    cell = project.cells("climb", "table2", reduced)[0]
    runs = [run_result(s.seed, s.key, {}, "diverged" if s.seed else "finished") for s in cell.runs]
    project.write(cell, runs)
    tex = tables.table_of(Plan(reduced, "climb"), "table2").tex()
    assert r"\quad $\alpha$ = 0 & ours & diverged 2/3 & 0." in tex
