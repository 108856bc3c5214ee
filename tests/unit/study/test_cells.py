"""From configuration to cells: order of layers, counts of the papers' tables, names, mistakes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml
from toy_changes import rewrite

from fedbench.errors import UserError
from fedbench.spec import as_value
from fedbench.study import plan
from fedbench.study.cells import matching, resolve
from fedbench.study.configuration import load_config, load_paper, paper_keys
from fedbench.study.plan import Plan

PAPERS = paper_keys()


class TestPapersAsShipped:
    @pytest.mark.parametrize(
        ("paper", "target", "count"),
        [
            ("localscgdam", "table1", 6 * 5 * 3),
            ("localscgdam", "figure1", 6 * 5),
            ("localscgdam", "figure2", 6 * 5),
            ("localscgdam", "figure3", 6 * 5),
            ("localscgdam", "figure4", 3 * 5),
            ("localscgdam", "figure5", 3),
            ("climb", "table1", 2 * 2 * 2 * 2 * 4),
            ("climb", "table2", 2 * 2 * 2 * 3 * 4),
        ],
    )
    def test_tables_and_figures_have_the_papers_cells(self, paper: str, target: str, count: int) -> None:
        config = load_config(overrides={"scale": "paper"})
        chosen = Plan(config, paper).cells(target)
        assert len(chosen) == len({cell.name for cell in chosen}) == count
        keys = {run.key for cell in chosen for run in cell.runs}
        assert len(keys) == 3 * count  # three seeds each, no two alike
        assert all(cell.scale == "paper" and len(cell.runs) == 3 for cell in chosen)

    @pytest.mark.parametrize("paper", PAPERS)
    def test_each_declared_value_of_a_setting_may_stand_in_the_name_of_a_cell(self, paper: str) -> None:
        for setting in load_paper(paper).settings.values():
            assert [as_value(value) for value in setting.values] == [*setting.values]

    @pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
    @pytest.mark.parametrize("paper", ["localscgdam", "climb"])
    def test_every_cell_of_every_scale_resolves(self, paper: str, scale: str) -> None:
        from fedbench.algorithms import make_method

        config = load_config(overrides={"scale": scale})
        chosen = Plan(config, paper).cells()
        assert chosen
        for cell in chosen:
            make_method(cell.runs[0].method, cell.runs[0].params)

    def test_localscgdams_protocol(self) -> None:
        config = load_config(overrides={"scale": "paper"})
        for cell in Plan(config).cells("table1"):
            run = cell.runs[0]
            assert run.data.clients == 4 and run.train.period == cell.setting["p"] and run.train.epochs == 100
            assert run.train.batch_size == {"STL10": 8, "Melanoma": 16}.get(cell.dataset, 32)
            if cell.dataset != "Melanoma":
                assert run.data.imbalance.imratio == 0.1 and run.data.labels.positive_half == "first"
            expected = {"FashionMNIST": "cnn", "Melanoma": "densenet121"}.get(cell.dataset, "resnet20")
            assert run.network.name == expected


@pytest.mark.usefixtures("project")
def test_a_table_says_which_of_our_own_datasets_enter_it() -> None:
    more = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
    rewrite(
        datasets=lambda part: part.update({"More": more}),
        tables=lambda part: part["table1"].update({"additions": ["More"]}),
    )
    config = load_config(overrides={"datasets": ["Digits", "More"]})
    assert {cell.dataset for cell in Plan(config, "toy").cells("table1")} == {"More"}
    rewrite(datasets=lambda part: part.update({"More": more}))
    assert {cell.dataset for cell in Plan(config, "toy").cells("table1")} == {"Digits", "More"}
    rewrite(tables=lambda part: part["table1"].update({"additions": ["Mare"]}))
    with pytest.raises(UserError, match="table1: additions: unknown dataset 'Mare'"):
        load_paper("toy")


@pytest.mark.usefixtures("project")
class TestCells:
    def test_names_paths_and_keys(self) -> None:
        chosen = Plan(load_config(), "toy").cells("table1")
        assert [cell.name for cell in chosen] == [
            f"toy/Digits/p{p}_imratio0.2/{method}"
            for p in (2, 4)
            for method in ("Plain", "Proximal", "Plain_too")
        ]
        assert chosen[0].path == Path("results/cells/demo/toy/Digits/p2_imratio0.2/Plain.json")
        assert [run.seed for run in chosen[0].runs] == [0, 1]
        other = Plan(load_config(overrides={"seeds": [0, 2]}), "toy").cells("table1")
        assert chosen[0].key != other[0].key and chosen[0].runs[0].key == other[0].runs[0].key

    def test_what_a_user_edits_changes_no_keys_but_seeds_and_scale(self) -> None:
        def keys(**options: Any) -> list[str]:
            return [cell.key for cell in Plan(load_config(overrides=options), "toy").cells("table1")]

        same = {
            "device": "auto",
            "client_chunk": 2,
            "compile": True,
            "inputs": "host",
            "data_dir": "x",
            "mirror": "y",
            "tolerance": 0.5,
        }
        assert keys() == keys(**same)
        assert keys() != keys(seeds="5")

    def test_a_table_runs_its_own_datasets_and_our_additions(self) -> None:
        config = load_config(overrides={"datasets": "Printed,Digits"})
        both = Plan(config, "toy")
        assert {cell.dataset for cell in both.cells("table1")} == {"Printed", "Digits"}
        alone = [both.command(cell).partition("--set ")[2] for cell in both.cells("table1")]
        assert {*alone} == {"'datasets=[\"Printed\"]'", "'datasets=[\"Digits\"]'"}
        # no stand-in needed
        assert {cell.dataset for cell in Plan(config, "toy").cells("figure1")} == {"Printed"}
        # it stands in
        assert {cell.dataset for cell in Plan(load_config(), "toy").cells("figure1")} == {"Digits"}
        with pytest.raises(UserError, match="unknown dataset of toy 'digits'"):
            Plan(load_config(overrides={"datasets": "digits"}), "toy").cells("table1")

    def test_only_figures_have_a_stand_in_and_none_that_the_call_leaves_out(self) -> None:
        datasets = PAPER["datasets"] | {"Other": PAPER["datasets"]["Digits"]}
        table = PAPER["tables"]["table1"] | {"additions": []}
        write_yaml(
            Path("config/papers/toy.yaml"), PAPER | {"datasets": datasets, "tables": {"table1": table}}
        )
        usual, other = (Plan(load_config(overrides=given), "toy") for given in ({}, {"datasets": "Other"}))
        assert usual.cells("table1") == [] and usual.cells("figure1") != []
        assert other.cells("figure1") == []

    def test_values_that_are_equal_and_written_differently_have_cells_of_their_own(self) -> None:
        asked = Plan(load_config(), "toy")
        places = [("Digits", {"p": value, "imratio": 0.2}, "Plain") for value in (2, 2.0)]
        assert len({asked.cell(*place).name for place in places}) == 2

    def test_all_of_a_paper_is_each_cell_once(self) -> None:
        everything = Plan(load_config(), "toy").cells()
        assert len(everything) == len({cell.name for cell in everything}) == 6 + 1  # figure 1 adds p = 8

    def test_patterns(self) -> None:
        chosen = Plan(load_config(), "toy").cells("table1")
        exact = matching(chosen, "toy/Digits/p2_imratio0.2/Plain")
        assert [cell.method for cell in exact] == ["Plain"]  # and not Plain_too with it
        assert [cell.method for cell in matching(chosen, "*/p2_*/Pla*")] == ["Plain", "Plain_too"]
        assert len(matching(chosen, "Proximal")) == 2 and len(matching(chosen, "*")) == 6
        with pytest.raises(UserError, match=r"no cell matches 'nothing'; `fedbench list`"):
            matching(chosen, "nothing")

    def test_many_methods_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cells = Plan(load_config(), "toy").cells("table1")
        for named, said in ((3, "Plain, Proximal, Plain_too"), (2, "Plain, Proximal and 1 more")):
            monkeypatch.setattr(plan, "NAMED", named)
            assert plan.methods_by_dataset(cells) == f"Digits: {said}"

    def test_unknown_targets_are_named(self) -> None:
        with pytest.raises(
            UserError, match=r"unknown table or figure of toy 'tabel1'\. Did you mean 'table1'"
        ):
            Plan(load_config(), "toy").cells("tabel1")


def test_cells_share_the_parts_that_are_equal() -> None:
    """And these are what a cell would have alone."""
    plan = Plan(load_config(overrides={"scale": "paper"}))
    cells = plan.cells()
    assert plan.at(load_config(overrides={"scale": "demo"})).at(plan.config) is plan
    for name in ("data", "network", "train"):
        parts = [getattr(cell.runs[0], name) for cell in cells]
        assert len({id(part) for part in parts}) == len({repr(part) for part in parts}) < len(cells)
    for cell in cells:
        place = (cell.dataset, cell.setting, cell.method, cell.runs[0].seed)
        assert resolve(plan.study, plan.scale, *place).key == cell.runs[0].key


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("targets", ["tables", "figures"])
def test_a_table_or_figure_that_names_no_methods_has_all(targets: str) -> None:
    paper = copy.deepcopy(PAPER)
    (target,) = paper[targets]
    del paper[targets][target]["methods"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    cells = Plan(load_config(), "toy").cells(target)
    assert {cell.method for cell in cells} == {"Plain", "Proximal", "Plain_too"}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("kind", ["data", "facts"])
def test_a_table_of_data_trains_nothing(kind: str) -> None:
    table = {
        "title": "Data",
        "kind": kind,
        "datasets": ["Digits"],
        "metrics": ["n_samples"],
        "rows": ["dataset"],
    }
    write_yaml(Path("config/papers/toy.yaml"), PAPER | {"tables": {"table1": table}})
    assert Plan(load_config(), "toy").cells("table1") == []
