"""Which files the rules of the workflow need."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.plan import plan
from fedbench.plan.configuration import load_config
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


def test_claims_have_a_table_and_a_figure() -> None:
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


def test_other_results_on_disk_change_what_claims_and_the_page_show_and_ours_do_not() -> None:
    asked = inputs()
    before = asked.besides_page()
    ours = asked.cells("toy")[0].path
    ours.parent.mkdir(parents=True)
    ours.write_text("{}")
    assert asked.besides_page() == before
    other = Path("results/cells/paper/toy/x.json")
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    assert [new.split()[0] for new in asked.besides_page() if new not in before] == ["results"]
    page = asked.besides_page()
    os.utime(other, (1, 1))
    assert [new.split()[0] for new in asked.besides_page() if new not in page] == ["results"], "written anew"
    *shown, results = asked.besides_claims("toy")
    assert shown == asked.besides("toy") and results not in before


def test_options_that_a_table_tells_of_make_it_again_and_others_do_not() -> None:
    before = inputs().besides("toy")
    shown = {"tolerance": 0.5, "seeds": [7], "datasets": ["Printed"], "scale": "paper", "constants": "paper"}
    silent = {
        "checkpoint_seconds": 1,
        "client_chunk": 2,
        "compile": True,
        "inputs": "host",
        "mirror": "https://x",
    }
    changed = {
        key for key, value in (shown | silent).items() if inputs(**{key: value}).besides("toy") != before
    }
    assert changed == {*shown}
    with Path("config/config.yaml").open("a") as file:
        file.write("tolerance: 0.5\n")
    assert inputs(tolerance=0.01).besides("toy") != before, "its commands say what the file does not"


def test_a_file_of_another_paper_changes_the_page_alone_and_one_of_its_own_what_extends_it() -> None:
    paper = copy.deepcopy(PAPER)
    paper["tables"]["table1"]["published"] = "numbers.csv"
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy", "title": "Mine", "tables": {"table1": {}}})
    asked = inputs(paper)
    papers, page = [asked.besides(key) for key in ("toy", "mine")], asked.besides_page()
    for place, name in (
        ("reproduced/paper/mine.csv", "shipped"),
        ("config/tuned/mine/x.yaml", "configuration"),
    ):
        path = Path(place)
        path.parent.mkdir(parents=True)
        path.write_text("")
        assert asked.besides("toy") == papers[0]
        for now, was in ((asked.besides("mine"), papers[1]), (asked.besides_page(), page)):
            assert name in [new.split()[0] for new in now if new not in was]
    for place, name in (
        ("reproduced/paper/toy.csv", "shipped"),
        ("reproduced/facts.csv", "shipped"),
        ("config/tuned/toy/demo/x.yaml", "configuration"),
        ("config/datasets/x.yaml", "configuration"),
        ("tables/published/toy/numbers.csv", "print"),
        ("tables/published/index.csv", "print"),
    ):
        before = [asked.besides("toy"), asked.besides("mine"), asked.besides_page()]
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text("")
        after = [asked.besides("toy"), asked.besides("mine"), asked.besides_page()]
        changed = [
            [line.split()[0] for line in now if line not in was]
            for now, was in zip(after, before, strict=True)
        ]
        assert changed == [[name]] * 3, f"{place} is shown by toy, by what extends it, and by the page"
    before = [asked.besides("toy"), asked.besides_page()]
    Path("config/datasets/x.yaml").rename("config/datasets/y.yaml")
    assert asked.besides("toy") != before[0] and asked.besides_page() != before[1], "its name is a dataset's"
    without = inputs(shipped=False)
    unshipped = without.besides("mine")
    Path("reproduced/paper/mine.csv").write_text("new")
    assert without.besides("mine") == unshipped
