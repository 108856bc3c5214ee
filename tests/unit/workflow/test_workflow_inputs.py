"""Which files the rules of the workflow need."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.study import plan
from fedbench.study.configuration import load_config
from fedbench.workflow.inputs import Inputs

pytestmark = pytest.mark.usefixtures("project")


def inputs(paper: dict[str, Any] | None = None, **given: Any) -> Inputs:
    if paper is not None:
        write_yaml(Path("config/papers/toy.yaml"), paper)
    return Inputs(load_config(overrides=given))


def test_a_cell_needs_its_dataset_and_a_partition_per_seed() -> None:
    asked = inputs()
    (cell, *_) = asked.cells("toy", "table1")
    data = asked.config.data_dir
    keys = [run.data.partition_key(run.seed) for run in cell.runs]
    assert asked.of_cell(cell) == [
        f"{data}/prepared/digits.json",
        *sorted(f"{data}/partitions/digits/{key}.npz" for key in keys),
    ]
    assert len(set(keys)) == 2
    run = asked.partitioned("digits", keys[1])
    assert run.data == cell.runs[1].data and run.seed == 1


def test_a_cell_is_found_by_its_path_and_a_wrong_one_named() -> None:
    asked = inputs()
    for cell in asked.cells("toy"):
        scale, paper, dataset, setting, file = cell.path.parts[2:]
        assert asked.cell(scale, paper, dataset, setting, file.removesuffix(".json")) is cell
    with pytest.raises(UserError, match=r"p5_imratio0\.2/Plain\.json is not a cell of toy at scale demo"):
        asked.cell("demo", "toy", "Digits", "p5_imratio0.2", "Plain")
    with pytest.raises(UserError, match="no cell at scale demo has a partition digits/0000"):
        asked.partitioned("digits", "0000")


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
    paper = copy.deepcopy(PAPER)
    paper["tables"]["table1"] |= change
    with pytest.raises(UserError, match=message):
        inputs(paper).of_table("toy", "table1")


def test_a_cell_waits_for_the_one_it_starts_from() -> None:
    paper = copy.deepcopy(PAPER)
    paper["methods"]["Plain"]["train"] = {"keep_model": True}
    paper["methods"]["Proximal"]["start"] = {"cell": {"method": "Plain"}}
    asked = inputs(paper)
    by_method = {cell.method: cell for cell in asked.cells("toy", "table1") if cell.setting["p"] == 4}
    assert str(by_method["Plain"].path) in asked.of_cell(by_method["Proximal"])
    assert not [path for path in asked.of_cell(by_method["Plain"]) if path.startswith("results")]


def test_tables_and_figures_need_the_cells_that_the_scale_runs() -> None:
    asked = inputs()
    assert asked.of_table("toy", "table1") == [str(cell.path) for cell in asked.cells("toy", "table1")]
    assert len(asked.of_figure("toy", "figure1")) == 2
    assert asked.everything(["tex", "pdf"]) == [
        "tables/table1.tex",
        "tables/table1.pdf",
        "figures/figure1.pdf",
    ]
    assert {*asked.of_page("toy")} == {str(cell.path) for cell in asked.cells("toy")}
    with pytest.raises(UserError, match=r"unknown table of toy .tabel1.\. Did you mean .table1."):
        asked.of_table("toy", "tabel1")


def test_claims_have_a_table() -> None:
    better = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
    asked = inputs(PAPER | {"claims": [{"says": "Good", "in": ["table1"], "better": better}]})
    tables, figures = ("tables/table1.md", "tables/claims.md"), ("figures/figure1.pdf",)
    assert asked.everything(["md"]) == [*tables, *figures]
    assert asked.of_claims("toy") == asked.of_table("toy", "table1")


def test_tables_about_the_data_need_what_they_count() -> None:
    paper = copy.deepcopy(PAPER)
    data = {"title": "Data", "kind": "data", "datasets": ["Printed", "Digits"]}
    facts = data | {"kind": "facts", "metrics": ["n_samples"], "rows": ["dataset"], "columns": ["imratio"]}
    paper["tables"] |= {
        "table2": data | {"settings": {"imratio": [0.1, 0.3]}},
        "table3": facts | {"splits": ["Training"], "settings": {"imratio": [0.1, 0.3]}},
        "table4": facts,
        "table5": facts | {"splits": ["all", "Training"], "settings": {"imratio": [0.1]}},
    }
    asked = inputs(paper)
    folder = f"{asked.config.data_dir}/partitions/digits"
    assert len(asked.of_table("toy", "table2")) == 1, "at the first value of each setting"
    wanted = asked.of_table("toy", "table3")
    assert len(wanted) == 2 and all(path.startswith(folder) for path in wanted)
    for path in wanted:  # of no cell: the tables' own settings
        assert asked.partitioned("digits", Path(path).stem).seed == 0
    assert asked.of_table("toy", "table4") == [f"{asked.config.data_dir}/prepared/digits.json"]
    assert asked.of_table("toy", "table5") == asked.of_table("toy", "table2")


def test_the_mistakes_of_another_paper_stop_no_job() -> None:
    asked = inputs()
    write_yaml(Path("config/papers/broken.yaml"), {"title": "x"})
    (cell, *_) = asked.cells("toy", "table1")
    assert asked.partitioned("digits", cell.runs[0].data.partition_key(0)).seed == 0
    with pytest.raises(UserError, match="no cell at scale demo"):
        asked.partitioned("digits", "0000")


def test_cells_are_resolved_once_and_only_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = list[tuple[Any, ...]]()
    real = plan.described

    def counted(paper: Any, scale: Any, *place: Any) -> Any:
        resolved.append((paper.key, *place))
        return real(paper, scale, *place)

    monkeypatch.setattr(plan, "described", counted)
    asked = inputs()
    asked.everything(["tex"])
    assert not resolved
    for _ in range(2):
        asked.of_table("toy", "table1")
        asked.of_figure("toy", "figure1")
        for cell in asked.cells("toy"):
            asked.of_cell(cell)
            asked.partitioned("digits", cell.runs[0].data.partition_key(0))
    assert len(resolved) == len({repr(place) for place in resolved}) == len(asked.cells("toy")) > 3


def test_results_of_other_scales_and_papers_are_shown_by_claims_and_the_page_and_ours_are_inputs_already() -> (
    None
):
    better = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
    asked = inputs(PAPER | {"claims": [{"says": "Good", "in": ["table1"], "better": better}]})
    ours, other, of_another = (
        asked.cells("toy", "table1")[0].path,
        Path("results/cells/paper/toy/x/y/z.json"),
        Path("results/cells/demo/mine/x/y/z.json"),
    )
    for path in (ours, other, of_another):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert asked.other_results("toy") == [str(other)]
    assert asked.other_results() == sorted([str(other), str(of_another)])


def test_a_paper_shows_files_of_its_own_and_of_what_it_extends_and_the_page_those_of_all() -> None:
    paper = copy.deepcopy(PAPER)
    paper["tables"]["table1"]["published"] = "numbers.csv"
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy", "title": "Mine", "tables": {"table1": {}}})
    asked = inputs(paper)
    ways = (asked.configuration, asked.published, asked.shipped)
    for way, place, shown_by_toy in (
        (0, "config/tuned/mine/x.yaml", False),
        (0, "config/tuned/toy/demo/x.yaml", True),
        (0, "config/datasets/x.yaml", True),
        (0, "config/scales/x.yaml", True),
        (1, "published/toy/numbers.csv", True),
        (1, "published/index.csv", True),
        (2, "reproduced/paper/mine.csv", False),
        (2, "reproduced/paper/toy.csv", True),
        (2, "reproduced/paper/curves/toy.csv", True),
    ):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text("")
        shown = [place in ways[way](*of) for of in (["toy"], ["mine"], [])]
        assert shown == [shown_by_toy, True, True], place
    assert {"config/config.yaml", "config/papers/toy.yaml"} <= {*asked.configuration("mine")}
    assert inputs(shipped=False).shipped("mine") == []
