"""Tables: what stands in them and below them, in which shape, and that no word from elsewhere is live."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_project import FIGURE, METHODS, REDUCED, TABLE, Project, line, localscgdam, run_result, table_of

from fedbench.data.partition import make_partition
from fedbench.data.prepared import prepare
from fedbench.data.summary import BinaryTask
from fedbench.errors import UserError
from fedbench.report import claims, described, tables
from fedbench.report.document import WORDS, Table
from fedbench.report.figures import build as figures
from fedbench.report.layout import Entry, grid_of
from fedbench.report.results_table import on_edge
from fedbench.report.text import MARKDOWN
from fedbench.results.frame import Compared
from fedbench.results.places import places_of
from fedbench.spec import RunSpec, StartSpec
from fedbench.store import code
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.study.tuned import Tuned

GOLDEN = Path(__file__).parents[2] / "golden"


def test_golden(tiny: Project) -> None:
    """The tiny table in all its forms; with FEDBENCH_GOLDEN=write in the environment they become the golden ones."""
    table = table_of()
    mark = table.provenance["stamp"]
    forms = {"tex": table.tex(), "md": table.markdown(), "txt": table.terminal()}
    forms["csv"] = re.sub(r",[0-9a-f]{16}$", ",KEY", table.csv(), flags=re.MULTILINE)
    for suffix, form in forms.items():
        golden = GOLDEN / f"report_table.{suffix}"
        if os.environ.get("FEDBENCH_GOLDEN") == "write":
            golden.write_text(form.replace(mark, "STAMP"), encoding="utf-8")
        assert form.replace(mark, "STAMP") == golden.read_text(encoding="utf-8"), golden
    short = table.terminal(details=False).splitlines()
    assert table.details and set(short[:-1]) <= {*forms["txt"].splitlines()}
    assert short[-1] == "All notes: fedbench show localscgdam/table1 --notes"


@pytest.mark.parametrize(("number", "bold"), [("0.878‡", "**0.878**‡"), ("12.5 %", "**12.5** %"), ("∞", "∞")])
def test_marks_behind_a_best_number_are_not_bold(number: str, bold: str) -> None:
    """Bold that ends between a mark and ± is none in GitHub's Markdown."""
    assert MARKDOWN.best(number) == bold


def test_where_nothing_was_run_print_is_laid_out_with_blanks(project: Project) -> None:
    table = table_of()
    entries = table.shown.entries
    assert len(entries) == 90 and all(entry.value == "–" and entry.printed for entry in entries)
    assert "Not run" not in table.markdown() and table.tex().count("--") >= 90 and "0.936" in table.tex()


@pytest.mark.parametrize(("scale", "marked"), [("paper", True), ("reduced", False)])
def test_verdicts_on_values_from_the_edge_of_a_grid_are_marked(scale: str, marked: bool) -> None:
    """On reference results: tuning for scale paper chose such values, that for reduced none."""
    symbols = [entry.symbol for entry in table_of(Config(scale=scale)).shown.entries if entry.symbol]
    assert len(symbols) >= 12 and all(symbol.endswith("°") == marked for symbol in symbols)


@pytest.mark.parametrize("target", ["climb/table2", "arena/leaderboard"])
def test_few_words_stand_below_a_table_and_no_note_is_lost(target: str) -> None:
    table = table_of(REDUCED, *target.split("/"))
    below = [note for note in table.below if note != table.shown.left]
    assert len(" ".join(below).split()) <= WORDS and table.notes[0] in below
    assert {*below, *table.rest} == {*table.notes, *table.details}
    assert below == [note for note in table.notes if note in below], "in their order"


def test_numbers_from_two_versions_of_a_dataset_are_said_not_to_compare(project: Project) -> None:
    """The same names and keys do not mean the same files, where those come from behind an account."""
    cells = project.cells()
    for cell, versions in zip(cells[:2], (("npy:one", "npy:one"), ("npy:one", "npy:two")), strict=True):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        for run, version in zip(runs, versions, strict=False):
            run["provenance"] |= {"data": version}
        project.write(cell, runs)
        said = table_of().markdown()
        assert (f"do not compare: {cells[0].dataset} (" in said) == ("npy:two" in versions)


def test_runs_of_other_code_are_counted_below_tables_and_figures_and_in_their_origin(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a mean over seeds of two methods looks like any other."""
    monkeypatch.setattr(code, "digest_of", lambda run: "today")
    mixed, same, *_ = project.cells()
    for cell, made_by in ((mixed, ["old", "old", "today"]), (same, ["today"] * 3)):
        runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
        for run, by in zip(runs, made_by, strict=True):
            run["provenance"] |= {"code": by}
        project.write(cell, runs)
    table = table_of()
    assert table.provenance["other_code"] == {mixed.name: 2}
    (note,) = [note for note in table.notes if "code" in note]
    assert "2 of 3 runs" in note and f"{mixed.dataset}: {mixed.method})" in note and note in table.below
    drawing = figures.drawing_of(Plan(REDUCED), "figure1")
    assert drawing.provenance["other_code"] == {mixed.name: 2} and drawing.words.endswith(note)


def test_no_word_from_elsewhere_begins_a_tag_in_markdown(project: Project) -> None:
    """Labels, like the sites of a file, and reasons."""
    project.change(datasets={"FashionMNIST": {"label": "<img src=x> \\<b>"}})
    project.fill()
    (cell, *_) = project.cells()
    project.write(cell, [run_result(run.seed, run.key, {}, "diverged", "<script>") for run in cell.runs])
    said = table_of().markdown()
    for text in (said, claims.claim_table(Plan(REDUCED)).markdown()):
        assert not re.search(r"(?<!\\)(\\\\)*<", text)
    assert "img src" in said and "script" in said


def test_no_line_break_leaves_a_comment_of_latex() -> None:
    """What is said of a commit stands in one: a line break there made the rest live LaTeX."""
    grid = grid_of(["n"], [("", "x", [Entry("1")])], "")
    made = {"scale": "s", "stamp": "abc\n\\input{/etc/passwd}\r\u2028\\write18{id}"}
    table = Table("paper", "table1", "T", grid, [], pd.DataFrame(), made)
    for text in (table.tex(), table.macros()):
        live = [line for line in text.splitlines() if not line.startswith("%")]
        assert live and not [line for line in live if "input" in line or "write18" in line]


def test_one_seed_prints_no_spread(project: Project) -> None:
    config = Config(scale="reduced", seeds=[0])
    project.fill("localscgdam", "table1", config)
    text = table_of(config).markdown()
    row = line(text, "CoDA", "**CIFAR10**")
    assert "±" not in row and "↓¹" in row and "below (one seed)" in text and "1 seed, 100 iterations" in text


def test_the_same_inputs_give_the_same_bytes(project: Project) -> None:
    project.fill()
    paths = tables.save_table(Plan(REDUCED), "table1")
    assert [path.name for path in paths] == [
        f"table1.{form}" for form in ("tex", "csv", "md", "json", "macros.tex")
    ]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in tables.save_table(Plan(REDUCED), "table1")] == first
    origin = json.loads(first[3])
    assert origin["commits"] == ["0123456789ab"] and len(origin["cells"]) == 30
    assert origin["training_seconds"] == 30 * 3 * 1.5


def test_users_own_numbers_methods_and_datasets(project: Project) -> None:
    table = {"datasets": ["FashionMNIST"], "methods": ["my_method_5", "CoDA"], "published": "mine.csv"}
    table |= {"settings": {"p": [4]}, "columns": []}
    project.change(methods={"my_method_5": {"algorithm": "mine"}}, tables={"table1": table}, claims=[])
    rows = "FashionMNIST,my_method_5,test_auc,0.5,0.1,std,3\nFashionMNIST,CoDDA,test_auc,0.5,,,\n"
    (project.root / "mine.csv").write_text("dataset,method,metric,mean,std,spread,n_seeds\n" + rows)
    project.finish_each(lambda cell: [0.45, 0.55, 0.65])
    made = table_of()
    row = line(made.tex(), r"\quad my\_method\_5")
    assert r"0.5{\tiny $\pm$0.1}" in row and row.endswith(r"? \\")
    assert "counts as 3 runs with this spread" in made.markdown()
    assert "in no table of this study: method CoDDA." in made.markdown()
    assert made.rows.set_index("method")["verdict"]["CoDA"] == "not published"


def test_a_label_is_what_tables_and_claims_print_and_no_column_is_for_print_that_lacks(
    project: Project,
) -> None:
    project.change(methods={name: {"label": f"{name} & co"} for name in METHODS})
    demo = Config(scale="demo")
    project.finish_each(lambda cell: [0.9], demo)
    table = table_of(demo)
    text = table.markdown()
    assert "| CoDA & co" in text and r"CoDA \& co" in table.tex()
    assert {*table.rows["method"]} == {*METHODS}, "numbers keep the name"
    assert "Digits: not in the paper; there is no published value." in table.below
    assert "paper" not in line(text, "Method")
    assert " & co) |" in claims.claim_table(Plan(demo)).markdown(), "the rival that decides"


def test_two_numbers_in_a_cell_doubtful_print_and_a_trouble_of_both_that_is_said_once(
    project: Project,
) -> None:
    paper = Config(scale="paper")
    project.fill("climb", "table2")
    project.fill("climb", "table2", paper)
    table = table_of(paper, "climb", "table2")
    markdown, tex, stacked = table.markdown(), table.tex(), table.terminal()
    assert "0.0402" in markdown and "AMBIGUOUS" in markdown and "Minority accuracy (overall acc" in markdown
    assert r" & paper & 0.0229 (0.5734) & \textbf{0.5575} (\textbf{0.6076}) & 0 (0.4836)" in tex
    assert r" & paper & --$^\dagger$ (0.5534) & \textbf{0.0402}$^\dagger$" in tex
    assert max(map(len, stacked.splitlines())) <= 120, "too wide to stand side by side"
    assert re.search(r"\n +± +(0\.\d{4} \(0\.\d{4}\) *){4}\n", stacked)
    (cell, *_) = project.cells("climb", "table2")
    bad = [run_result(s.seed, s.key, {}, "diverged" if s.seed else "finished") for s in cell.runs]
    project.write(cell, bad)
    assert r"\quad $\alpha$ = 0 & ours & diverged 2/3 & 0." in table_of(REDUCED, "climb", "table2").tex()


FINAL = FIGURE | {"kind": "final", "x": "p", "log": "x"}
FOREST = FIGURE | {"kind": "forest", "settings": {"p": [4]}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (TABLE | {"rows": ["methd"]}, "unknown row or column 'methd'"),
        (TABLE | {"columns": []}, "p takes several values"),
        (TABLE | {"metrics": []}, "names no metrics"),
        (TABLE | {"average": "q"}, "unknown axis to average over 'q'"),
        (TABLE | {"average": "method"}, "unknown axis to average over 'method'"),
        (TABLE | {"rounds_to": {"test_auk": 0.9}}, "unknown metric 'rounds_to_test_auk_0.9'"),
        (TABLE | {"rounds_to": {"test_auc": [0.9, 1.0]}}, "between 0.5, .* and 1; not at 1"),
        (TABLE | {"rounds_to": {"test_auc": 0.5}}, "not at 0.5"),
        (TABLE | {"slope": "p"}, "slope: p takes 4, 8; .* 3 or more"),
        (TABLE | {"slope": "method"}, "setting to fit a slope along"),
        (TABLE | {"kind": "rates", "pool": ["p"], "columns": []}, "unknown exponent 'test_auc'"),
        (TABLE | {"references": ["central"]}, r"table1\.references.*'local' or 'pooled'"),
        (TABLE | {"references": ["local"], "kind": "facts"}, "references go with kind results"),
        (FIGURE | {"panels": "period"}, "unknown panels of a figure 'period'"),
        (FIGURE | {"panels": ["dataset", "p", "method"]}, "panels"),
        (FIGURE | {"log": "z"}, "figures.figure1.log"),
        (FINAL | {"x": "iteration"}, "unknown x of a figure of kind final 'iteration'"),
        (FINAL | {"panels": ["dataset", "p"]}, "p is x and panels; name it once"),
        (FINAL | {"settings": {"p": [4, "none"]}}, "p takes none here, which is no number"),
        (FOREST | {"panels": "method"}, "kind forest takes panels: dataset"),
        (FOREST | {"x": "round"}, "kind forest takes"),
        (FOREST | {"log": "y"}, "kind forest takes"),
        (FOREST | {"metrics": ["test_auc", "test_ap@Basel"]}, "one metric and that of sites"),
        (FIGURE | {"kind": "confusion", "panels": ["metric", "method"], "references": ["local"]},
         "references go with kind"),
        (FIGURE | {"kind": "roc", "panels": "metric", "metrics": ["test_auc", "test_ap"]}, "takes one test metric"),
        (FIGURE | {"kind": "roc", "panels": "metric", "metrics": ["val_auc"]}, "takes one test metric"),
        (FIGURE | {"kind": "roc", "panels": "metric", "log": "x"}, "takes one test metric"),
        (FIGURE | {"kind": "roc", "panels": "metric", "x": "round"}, "takes one test metric"),
    ],
)  # fmt: skip
def test_a_table_or_figure_that_does_not_fit_is_named(
    project: Project, spec: dict[str, Any], message: str
) -> None:
    paper = localscgdam() | {"claims": []}
    paper["figures" if "panels" in spec else "tables"] = {"figure1" if "panels" in spec else "table1": spec}
    project.save_paper("localscgdam", paper)
    with pytest.raises(UserError, match=message):
        table_of()


DIGITS = Config(scale="demo", datasets=["Digits"])


Piece = dict[str, object]


def cells_of_digits(project: Project, data: Piece | None = None, train: Piece | None = None) -> list[Cell]:
    """Table 1 of the paper with its datasets' data and training as given."""
    paper = localscgdam()
    defaults = paper["defaults"]
    defaults = {"data": defaults["data"] | (data or {}), "train": defaults["train"] | (train or {})}
    project.save_paper("localscgdam", paper | {"defaults": defaults})
    return project.cells("localscgdam", "table1", DIGITS)


def test_lengths_weights_and_what_training_starts_from_are_those_of_the_runs(project: Project) -> None:
    lengths: tuple[Piece, ...] = ({}, {"iterations": None, "epochs": 2.5}, {"iterations": None, "rounds": 30})
    for train, said in zip(lengths, ("100 iterations", "2.5 epochs", "30 rounds"), strict=True):
        assert described.trained(cells_of_digits(project, train=train)) == [f"Digits: {said}, 4 clients."]
    weighed = described.weights(cells_of_digits(project, train={"weights": "samples"}))
    assert weighed == ["Digits: averages weigh clients by their training samples."]
    chosen = cells_of_digits(project)
    assert described.weights(chosen) == []
    plain = chosen[0].runs[0]
    parent = plain.model_copy(update={"train": plain.train.model_copy(update={"keep_model": True})})
    for start, said in (
        ({"sha256": "0" * 64, "drop_head": True}, "the weights of a file without its output layer"),
        ({"run": parent}, f"a model of 100 iterations of {plain.method} on digits"),
    ):
        run = plain.model_copy(update={"start": StartSpec(**start)})
        cell = chosen[0].model_copy(update={"runs": [run]})
        assert described.trained([cell]) == [f"Digits: 100 iterations, 4 clients, from {said}."]


def test_a_caption_names_the_lengths_of_what_ran_alone(project: Project) -> None:
    paper = localscgdam()
    paper["datasets"]["FashionMNIST"] |= {"train": {"iterations": 200}}
    project.save_paper("localscgdam", paper)
    project.finish_each(lambda cell: [0.9] * 3 if cell.dataset == "CIFAR10" else None)
    assert "Scale reduced: 3 seeds, 100 iterations." in table_of().title
    project.fill()
    assert "Scale reduced: 3 seeds, 100 or 200 iterations." in table_of().title


def test_the_positive_class_its_share_and_what_was_dropped_are_said(project: Project) -> None:
    halves = {"labels": {"rule": "halves"}, "imbalance": {"rule": "drop_positives", "imratio": 0.1}}
    chosen = cells_of_digits(project, halves)
    assert described.tasks(chosen, Path("data")) == []  # nothing is known yet, so nothing is said
    run = chosen[0].runs[0]
    prepare("digits", "data")
    path = make_partition(run.data, run.seed, "data")
    train = json.loads(path.with_suffix(".json").read_text())["train"]
    classes = np.load("data/prepared/digits/y_train.npy")
    dropped = int((classes < 5).sum()) - train["class_counts"]["1"]
    (said,) = described.tasks(chosen, Path("data"))
    assert said == (
        f"Digits: positive: 0, 1, 2, 3, 4 (9.9 % of {train['n']:,} training samples; {dropped:,} dropped)."
    )
    assert said in tables.table_of(Plan(DIGITS), "table1").markdown()


def test_of_several_partitions_the_least_and_the_largest_number_are_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_clients = {4: (900, 0.1, 0), 8: (1200, 0.099, 70), 2: (1000, 0.25, 9)}
    tasks = {n: BinaryTask(("3", "4"), *facts) for n, facts in of_clients.items()}
    monkeypatch.setattr(described, "binary_task", lambda data, seed, data_dir: tasks[data.clients])
    first, *_ = cells_of_digits(project)
    dealt = [first.model_copy(update={"runs": [with_clients(first.runs[0], n)]}) for n in tasks]
    assert described.tasks(dealt, Path("data")) == [
        "Digits: positive: 3, 4 (9.9 % to 25.0 % of 900 to 1,200 training samples; 0 to 70 dropped)."
    ]


def with_clients(run: RunSpec, clients: int) -> RunSpec:
    return run.model_copy(update={"data": run.data.model_copy(update={"clients": clients})})


def test_the_edge_of_a_pooled_number_is_that_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(load_config(overrides={"scale": "reduced"}), "cycp")
    (place, *_) = places_of(plan.study, ["table9"], ["FashionMNIST"])
    item = Compared(
        scale="reduced", place=tuple(pair for pair in place if pair[0] != "removal"), method="CyCp-Minimax",
        metric="test_auc", at=dict(place), dataset="FashionMNIST", difference=0.1,
    )  # fmt: skip
    cell = plan.cell("FashionMNIST", {**dict(place[1:]), "removal": 0}, "CyCp-Minimax")
    assert on_edge(plan, item) == bool(plan.tuned(cell).edges)
    monkeypatch.setattr(Tuned, "edges", ["lr"])
    assert on_edge(plan, item)
