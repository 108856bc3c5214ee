"""Which files the rules of the workflow need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import rewrite, write_yaml

from fedbench.errors import UserError
from fedbench.study.configuration import load_config
from fedbench.workflow.inputs import Inputs

pytestmark = pytest.mark.usefixtures("project")
BETTER = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}


def inputs(**given: Any) -> Inputs:
    return Inputs(load_config(overrides=given))


def write(*paths: str | Path) -> None:
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def test_a_cell_needs_its_dataset_and_a_partition_per_seed() -> None:
    asked = inputs()
    write_yaml(Path("config/papers/broken.yaml"), {"title": "x"})  # the mistakes of another stop no job
    (cell, *_) = asked.cells("toy", "table1")
    data, keys = asked.config.data_dir, [run.data.partition_key(run.seed) for run in cell.runs]
    partitions = sorted(f"{data}/partitions/digits/{key}.npz" for key in keys)
    assert asked.of_cell(cell) == [f"{data}/prepared/digits.json", *partitions]
    assert len(set(keys)) == 2
    run = asked.partitioned("digits", keys[1])
    assert run.data == cell.runs[1].data and run.seed == 1
    with pytest.raises(UserError, match="no cell at scale demo has a partition digits/0000"):
        asked.partitioned("digits", "0000")


def test_a_cell_is_looked_up_by_its_path_and_a_wrong_one_named() -> None:
    asked = inputs()
    for cell in asked.cells("toy"):
        scale, paper, dataset, setting, file = cell.path.parts[2:]
        assert asked.cell(scale, paper, dataset, setting, file.removesuffix(".json")) is cell
    slip = r"p5_imratio0\.2/Plain\.json is not a cell of toy at scale demo; nearest: "
    other = "--config scale=paper has it"
    for scale, setting, says in (("demo", "p5_imratio0.2", slip), ("paper", "p2_imratio0.2", other)):
        with pytest.raises(UserError, match=says):
            asked.cell(scale, "toy", "Digits", setting, "Plain")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": []}, "toy/table1: p takes several values; rows and columns must place every axis"),
        ({"metrics": []}, "toy/table1 names no metrics"),
        ({"published": "nowhere.csv"}, "nowhere.csv do not exist"),
    ],
)
def test_a_table_whose_rows_and_columns_do_not_fit_asks_for_nothing(
    change: dict[str, Any], message: str
) -> None:
    rewrite(tables=lambda tables: tables["table1"].update(change))
    with pytest.raises(UserError, match=message):
        inputs().of_table("toy", "table1")


def test_tables_figures_and_claims_need_the_cells_that_the_scale_runs() -> None:
    assert inputs().everything(["tex"]) == ["tables/table1.tex", "figures/figure1.pdf"]
    rewrite(claims=[{"says": "Good", "in": ["table1"], "better": BETTER}])
    asked = inputs()
    results = [str(cell.path) for cell in asked.cells("toy", "table1")]
    assert asked.of_table("toy", "table1") == asked.of_claims("toy") == results
    assert len(asked.of_figure("toy", "figure1")) == 2
    assert {*asked.of_page("toy")} == {str(cell.path) for cell in asked.cells("toy")}
    tables = ["tables/table1.tex", "tables/table1.pdf", "tables/claims.md"]
    assert asked.everything(["tex", "pdf"]) == [*tables, "figures/figure1.pdf"]
    with pytest.raises(UserError, match=r"unknown table of toy .tabel1.\. Did you mean .table1."):
        asked.of_table("toy", "tabel1")


def test_tables_about_the_data_need_what_they_count() -> None:
    facts = {"title": "Data", "kind": "facts", "datasets": ["Printed", "Digits"], "metrics": ["n_samples"]}
    facts |= {"rows": ["dataset"], "columns": ["imratio"]}
    tables = {
        "table3": facts | {"splits": ["Training"], "settings": {"imratio": [0.1, 0.3]}},
        "table4": facts,
        "table5": facts | {"splits": ["all", "Training"], "settings": {"imratio": [0.1]}},
    }
    rewrite(tables=lambda all: all.update(tables))
    asked = inputs()
    folder = f"{asked.config.data_dir}/partitions/digits"
    wanted = asked.of_table("toy", "table3")
    assert len(wanted) == 2 and all(path.startswith(folder) for path in wanted)
    for path in wanted:  # of no cell: the tables' own settings
        assert asked.partitioned("digits", Path(path).stem).seed == 0
    assert asked.of_table("toy", "table4") == [f"{asked.config.data_dir}/prepared/digits.json"]
    (first,) = asked.of_table("toy", "table5")
    assert first in wanted


def test_a_paper_shows_files_of_its_own_and_of_what_it_extends_and_the_page_those_of_all() -> None:
    rewrite(tables=lambda tables: tables["table1"].update(published="numbers.csv"))
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy", "title": "Mine", "tables": {"table1": {}}})
    asked = inputs()
    for place, shown_by_toy in (
        ("config/tuned/mine/x.yaml", False),
        ("config/tuned/toy/demo/x.yaml", True),
        ("config/datasets/x.yaml", True),
        ("config/scales/x.yaml", True),
        ("published/toy/numbers.csv", True),
        ("published/index.csv", True),
        ("reproduced/paper/mine.csv", False),
        ("reproduced/paper/toy.csv", True),
        ("reproduced/paper/curves/toy.csv", True),
    ):
        write(place)
        assert [place in asked.shown_files(of) for of in ("toy", "mine", "*")] == [shown_by_toy, True, True]
    assert {"config/config.yaml", "config/papers/toy.yaml"} <= {*asked.shown_files("mine")}
    assert inputs(shipped=False).shipped("mine") == []
