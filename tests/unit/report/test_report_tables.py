"""Tables: what stands in them, in which shape, and that LaTeX takes them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_project import METHODS, Project, localscgdam, run_result

from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.plan.schema import Config
from fedbench.report.tables import build as tables
from fedbench.report.tables.notes import LONG

GOLDEN = Path(__file__).parents[2] / "golden"
Fill = Callable[[str, str], Project]


def cell_of(project: Project, config: Config, dataset: str, method: str, p: int = 4) -> Cell:
    cells = project.cells("localscgdam", "table1", config)
    return next(c for c in cells if (c.dataset, c.method, c.setting["p"]) == (dataset, method, p))


def line(text: str, start: str, after: str = "") -> str:
    """The first line that starts with ``start`` after the line that holds ``after``."""
    lines = text[text.index(after) :].splitlines()
    return next(found for found in lines if found.lstrip("| ").startswith(start))


@pytest.fixture
def tiny(project: Project) -> Project:
    """One dataset that runs and one that does not, three methods, two periods, every kind of trouble."""
    paper: dict[str, Any] = localscgdam()
    table = paper["tables"]["table1"]
    table |= {"datasets": ["FashionMNIST", "Melanoma"], "methods": ["LocalSCGDAM", "CoDA", "LocalSGDM_RL"]}
    table["settings"] = {"p": [4, 8]}
    paper["claims"][0]["better"]["than"] = ["CoDA", "LocalSGDM_RL"]
    project.save_paper("localscgdam", paper)
    config = Config(scale="reduced")
    for cell in project.cells("localscgdam", "table1", config):
        values = {"LocalSCGDAM": [0.975, 0.980, 0.985], "CoDA": [0.90, 0.94, 0.98]}.get(cell.method)
        if values:
            project.finish(cell, values, device_mean_test_auc=0.97, device_var_test_auc=3e-7)
    broken = cell_of(project, config, "FashionMNIST", "LocalSGDM_RL")
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9}) for s in broken.runs]
    runs[2] |= {"status": "diverged", "reason": "loss is nan at iteration 8"}
    project.write(broken, runs)
    return project


def test_golden(tiny: Project) -> None:
    """The tiny table in all its forms; with FEDBENCH_GOLDEN=write in the environment they become the golden ones."""
    table = tables.make("localscgdam", "table1", Config(scale="reduced"), tiny.root)
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
    text = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    rows = {m: line(text, m, "**FashionMNIST**").split("|")[2:4] for m in values}
    assert [m for m, (ours, _) in rows.items() if "**" in ours] == ["LocalSCGDAM", "CoDA"]
    assert [m for m, (_, paper) in rows.items() if "**" in paper] == ["LocalSCGDAM", "LocalSGDM_RL"]


def test_a_method_alone_is_not_the_best(project: Project, reduced: Config) -> None:
    project.finish(cell_of(project, reduced, "FashionMNIST", "CoDA"), [0.9] * 3)
    text = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    assert "0.900±0.000" in line(text, "CoDA", "**FashionMNIST**")
    assert "**0.900**" not in text


def test_trouble_stays_visible_and_never_ranks(tiny: Project) -> None:
    config = Config(scale="reduced")
    part = cell_of(tiny, config, "FashionMNIST", "LocalSGDM_RL", 8)
    tiny.write(part, [run_result(part.runs[0].seed, part.runs[0].key, {"test_auc": 0.999})])
    table = tables.make("localscgdam", "table1", config, tiny.root)
    text = table.markdown()
    row = line(text, "LocalSGDM_RL", "**FashionMNIST**")
    assert "diverged 1/3" in row and "0.999 (1/3)" in row and "**0.999**" not in row
    assert "Diverged: FashionMNIST, p = 4, LocalSGDM_RL: 1 of 3 seeds: loss is nan at iteration 8." in text
    assert "Incomplete: FashionMNIST, p = 8, LocalSGDM_RL: 1 of 3 seeds are done." in text
    verdicts = table.rows.set_index(["dataset", "method", "p"])["verdict"]
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 4] == "diverged"
    assert verdicts["FashionMNIST", "LocalSGDM_RL", 8] == "incomplete"
    tiny.write(part, [])
    text = tables.make("localscgdam", "table1", config, tiny.root).markdown()
    assert "–: not run." in text, "a dash beside numbers"


def test_what_was_not_run_is_one_line_in_every_form(tiny: Project) -> None:
    table = tables.make("localscgdam", "table1", Config(scale="reduced"), tiny.root)
    for form in (table.tex(), table.markdown(), table.terminal()):
        lines = [found for found in form.splitlines() if "Melanoma" in found]
        assert len(lines) == 1 and "Not run: Melanoma (6 of 12 numbers)." in lines[0]
    printed = table.rows.set_index(["dataset", "method", "p"])["published_mean"]
    assert printed["Melanoma", "LocalSGDM_RL", 4] == "0.737", "the CSV has all that is published"
    score = "Of 12 published values: 2 match, 2 inconclusive, 1 diverged, 7 not run."
    assert score in table.markdown()


def test_a_table_of_which_nothing_was_run_is_a_caption_and_a_line(project: Project, reduced: Config) -> None:
    table = tables.make("localscgdam", "table1", reduced, project.root)
    assert "tabular" not in table.tex() and "|" not in table.markdown()
    left = "Not run: CATvsDOG, CIFAR10, CIFAR100, STL10, FashionMNIST, Melanoma (90 of 90 numbers)."
    assert left in table.tex() and left in table.markdown() and left in " ".join(table.terminal().split())


def test_columns_without_a_number_are_left_out(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table1"] |= {"rows": ["method"], "columns": ["p", "dataset"]}
    project.save_paper("localscgdam", paper)
    for cell in project.cells("localscgdam", "table1", reduced):
        if cell.dataset == "CIFAR10" and cell.setting["p"] != 8 and cell.method != "CoDA":
            project.finish(cell, [0.9] * 3)
    table = tables.make("localscgdam", "table1", reduced, project.root)
    assert table.shown.headers == [[("p = 4", 1), ("p = 16", 1)], [("CIFAR10", 1), ("CIFAR10", 1)]]
    assert [row.label for row in table.shown.rows] == [name for name in METHODS if name != "CoDA"]
    assert "CoDA" in table.shown.left and "(82 of 90 numbers)" in table.shown.left


def test_long_notes_go_to_the_end(tiny: Project) -> None:
    table = tables.make("localscgdam", "table1", Config(scale="reduced"), tiny.root)
    assert all(len(note) <= LONG for note in table.notes)
    below, _, end = table.tex().partition("\\end{table}")
    assert "matches: the 90" in below and "hyper-parameters" not in below
    assert all(line.startswith("% note: ") for line in end.split("\n") if line) and "hyper-parameters" in end


def test_verdicts_in_the_csv(tiny: Project) -> None:
    table = tables.make("localscgdam", "table1", Config(scale="reduced"), tiny.root)
    rows = pd.read_csv(StringIO(table.csv())).set_index(["dataset", "method", "p"])
    best = rows.loc[("FashionMNIST", "LocalSCGDAM", 4)]
    assert (best["mean"], best["std"], best["n_seeds"]) == (0.98, 0.005, 3)
    assert (best["published_mean"], best["verdict"], best["half_width"] < 0.01) == (0.98, "matches", True)
    noisy = rows.loc[("FashionMNIST", "CoDA", 4)]
    assert noisy["difference"] == pytest.approx(-0.036)
    assert noisy["half_width"] == pytest.approx(2.919986 * 0.04 / 3**0.5, rel=1e-5)
    assert (noisy["verdict"], noisy["seeds_to_decide"]) == ("inconclusive", 9)
    absent = rows.loc[("Melanoma", "CoDA", 8)]
    assert (absent["status"], absent["verdict"], absent["published_mean"]) == ("not run", "not run", 0.721)


def test_one_seed_prints_no_spread(project: Project) -> None:
    config = Config(scale="reduced", seeds=[0])
    project.fill("localscgdam", "table1", config)
    text = tables.make("localscgdam", "table1", config, project.root).markdown()
    assert "one seed, so no spread" in text and "(1 seed; 100 iterations)" in text
    row = line(text, "CoDA", "**CIFAR10**")
    assert "±" not in row and "↓¹" in row
    assert "worse (one seed)" in text and "¹ one seed: there is no interval" in text


def test_rank_agreement_is_reported(filled: Fill, reduced: Config) -> None:
    project = filled("localscgdam", "table1")
    order = {"LocalSCGDAM": 0.9, "LocalSGDM_RL": 0.8, "LocalSGDAM": 0.7, "CoDA": 0.6, "LocalSGDM": 0.55}
    for method, value in order.items():
        project.finish(cell_of(project, reduced, "CIFAR10", method, 8), [value] * 3)
    table = tables.make("localscgdam", "table1", reduced, project.root)
    # the paper's order at p = 8: 0.914, 0.904, CoDA 0.886, LocalSGDAM 0.880, 0.871: one of ten pairs is swapped
    assert line(table.terminal(), "order τ", "CIFAR10\n").split()[3] == "0.80"


def test_the_same_inputs_give_the_same_bytes(filled: Fill, reduced: Config) -> None:
    project = filled("localscgdam", "table1")
    paths = tables.build("localscgdam", "table1", reduced, project.root)
    assert [path.name for path in paths] == ["table1.tex", "table1.csv", "table1.md", "table1.json"]
    first = [path.read_bytes() for path in paths]
    assert [
        path.read_bytes() for path in tables.build("localscgdam", "table1", reduced, project.root)
    ] == first
    assert not list(paths[0].parent.glob("*.part"))
    origin = json.loads(first[3])
    assert origin["commits"] == ["0123456789ab"] and len(origin["cells"]) == 30
    assert origin["training_seconds"] == 30 * 3 * 1.5


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
        said = tables.make("localscgdam", "table1", reduced, project.root).markdown()
        assert ("prepared differently" in said) == ("two" in versions)
    assert f"cannot be compared: {cells[0].dataset}." in said


def test_names_in_the_published_file_that_fit_nothing_are_said(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table1"]["published"] = "mine.csv"
    project.save_paper("localscgdam", paper)
    (project.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.5\nCoDDA,test_auc,0.5\n")
    said = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    assert "nothing here is called so: method CoDDA." in said


def test_users_own_numbers_methods_and_datasets(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["methods"]["my_method_5"] = {"algorithm": "mine"}
    paper["tables"]["table1"] |= {
        "datasets": ["FashionMNIST"], "methods": ["my_method_5", "CoDA"], "published": "mine.csv",
        "settings": {"p": [4]}, "columns": [],
    }  # fmt: skip
    project.save_paper("localscgdam", paper)
    rows = "FashionMNIST,my_method_5,test_auc,0.5,0.1,std,3\n"
    (project.root / "mine.csv").write_text("dataset,method,metric,mean,std,spread,n_seeds\n" + rows)
    for cell in project.cells("localscgdam", "table1", reduced):
        project.finish(cell, [0.45, 0.55, 0.65])
    table = tables.make("localscgdam", "table1", reduced, project.root)
    row = line(table.tex(), r"\quad my\_method\_5")
    assert r"0.5{\tiny $\pm$0.1}" in row and row.endswith(r"? \\")
    assert "standard deviation over 3 runs" in table.markdown()
    assert "both sides' seeds" in table.markdown()
    kinds = table.rows.set_index("method")["verdict"]
    assert kinds["CoDA"] == "no reference"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": ["dataset", "methd"]}, "unknown row or column of localscgdam/table1 'methd'"),
        ({"rows": ["dataset", "method", "p"]}, "p is in rows and columns twice"),
        ({"columns": []}, "p takes several values"),
        ({"metrics": []}, "names no metrics"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    project: Project, reduced: Config, change: dict[str, Any], message: str
) -> None:
    paper = localscgdam()
    paper["tables"]["table1"] |= change
    project.save_paper("localscgdam", paper)
    with pytest.raises(UserError, match=re.escape(message)):
        tables.make("localscgdam", "table1", reduced, project.root)
    with pytest.raises(UserError, match="unknown table of localscgdam 'table11'"):
        tables.make("localscgdam", "table11", reduced, project.root)


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
    text = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    assert "the last 3 evaluations: training is stuck: CIFAR10, p = 4, CoDA: seeds 0, 1, 2." in text


def test_of_a_metric_that_falls_the_lowest_is_bold(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table1"] |= {"metrics": ["test_loss"], "published": None}
    project.save_paper("localscgdam", paper)
    for method, value in {"CoDA": 0.3, "LocalSGDAM": 0.2, "LocalSGDM": 0.4}.items():
        project.finish(cell_of(project, reduced, "CIFAR10", method), [value] * 3, "test_loss")
    text = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    assert "**0.200**" in line(text, "LocalSGDAM ", "**CIFAR10**")
    assert "**0.300**" not in text and "**0.400**" not in text


def test_a_run_that_learned_nothing_is_flagged_in_its_cell(project: Project, reduced: Config) -> None:
    """A mean of 0.98, 0.98 and a constant 0.5 looks like a poor method; it is a good one that failed once."""
    project.finish(cell_of(project, reduced, "CIFAR10", "CoDA"), [0.98, 0.5, 0.98])
    project.finish(cell_of(project, reduced, "CIFAR10", "LocalSGDM"), [0.98, 0.500001, 0.98])
    text = tables.make("localscgdam", "table1", reduced, project.root).markdown()
    assert "**0.820**±0.277 (1/3 constant)" in line(text, "CoDA", "**CIFAR10**")
    assert "constant)" not in line(text, "LocalSGDM ", "**CIFAR10**")
    assert "nothing was learned: CIFAR10, p = 4, CoDA: seed 1." in text
