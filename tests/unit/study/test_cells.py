"""From configuration to cells: counts of the papers' tables, names, which cells a scale runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, rewrite

from fedbench.errors import UserError
from fedbench.study import plan
from fedbench.study.cells import matching, resolve
from fedbench.study.configuration import load_config, load_paper
from fedbench.study.plan import Plan


@pytest.mark.parametrize(
    ("paper", "target", "count"),
    [
        ("localscgdam", "table1", 6 * 5 * 3),
        ("localscgdam", "figure4", 3 * 5),
        ("climb", "table1", 2 * 2 * 2 * 2 * 4),
        ("climb", "table2", 2 * 2 * 2 * 3 * 4),
    ],
)
def test_tables_and_figures_have_the_papers_cells(paper: str, target: str, count: int) -> None:
    chosen = Plan(load_config(overrides={"scale": "paper"}), paper).cells(target)
    assert len(chosen) == len({cell.name for cell in chosen}) == count
    assert all(cell.scale == "paper" and len(cell.runs) == 3 for cell in chosen)
    assert len({run.key for cell in chosen for run in cell.runs}) == 3 * count, "no two alike"


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
class TestToy:
    """Of a small paper with two datasets, one of them the paper's own."""

    def cells(self, target: str | None = "table1", **given: Any) -> list[Any]:
        return Plan(load_config(overrides=given), "toy").cells(target)

    def datasets(self, target: str = "table1", **given: Any) -> set[str]:
        return {cell.dataset for cell in self.cells(target, **given)}

    def test_names_paths_and_keys(self) -> None:
        chosen = self.cells()
        methods = ("Plain", "Proximal", "Plain_too")
        names = [f"toy/Digits/p{p}_imratio0.2/{method}" for p in (2, 4) for method in methods]
        assert [cell.name for cell in chosen] == names
        assert chosen[0].path == Path("results/cells/demo/toy/Digits/p2_imratio0.2/Plain.json")
        assert [run.seed for run in chosen[0].runs] == [0, 1]
        other = self.cells(seeds=[0, 2])
        assert chosen[0].key != other[0].key and chosen[0].runs[0].key == other[0].runs[0].key
        silent = {"device": "auto", "client_chunk": 2, "compile": True, "inputs": "host"}
        silent |= {"data_dir": "x", "mirror": "y", "tolerance": 0.5}
        assert [cell.key for cell in self.cells(**silent)] == [cell.key for cell in chosen]
        everything = [cell.name for cell in self.cells(None)]
        assert len(everything) == len({*everything}) == 6 + 1, "figure 1 adds p = 8"
        asked = Plan(load_config(), "toy")
        places = [("Digits", {"p": value, "imratio": 0.2}, "Plain") for value in (2, 2.0)]
        assert len({asked.cell(*place).name for place in places}) == 2, "equal, and written differently"

    def test_a_table_runs_its_own_datasets_and_our_additions(self) -> None:
        both = Plan(load_config(overrides={"datasets": "Printed,Digits"}), "toy")
        assert {cell.dataset for cell in both.cells("table1")} == {"Printed", "Digits"}
        alone = [both.command(cell).partition("--set ")[2] for cell in both.cells("table1")]
        assert {*alone} == {"'datasets=[\"Printed\"]'", "'datasets=[\"Digits\"]'"}
        assert {cell.dataset for cell in both.cells("figure1")} == {"Printed"}, "no stand-in needed"
        assert self.datasets("figure1") == {"Digits"}, "it stands in"

        more = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
        with_more = {"datasets": lambda part: part.update({"More": more})}
        for additions, shown in (({"additions": ["More"]}, {"More"}), ({}, {"Digits", "More"})):
            rewrite(**with_more, tables=lambda part, more=additions: part["table1"].update(more))
            assert self.datasets(datasets=["Digits", "More"]) == shown
        rewrite(tables=lambda part: part["table1"].update({"additions": ["Mare"]}))
        with pytest.raises(UserError, match="table1: additions: unknown dataset 'Mare'"):
            load_paper("toy")

    def test_only_figures_have_a_stand_in_and_none_that_the_call_leaves_out(self) -> None:
        rewrite(
            datasets=lambda part: part.update({"Other": part["Digits"]}),
            tables=lambda part: part["table1"].update({"additions": []}),
        )
        assert self.datasets() == set() and self.datasets("figure1") == {"Digits"}
        assert self.datasets("figure1", datasets="Other") == set()

    def test_patterns(self) -> None:
        chosen = self.cells()
        for pattern, methods in {
            "toy/Digits/p2_imratio0.2/Plain": ["Plain"],  # and not Plain_too with it
            "*/p2_*/Pla*": ["Plain", "Plain_too"],
            "Proximal": ["Proximal"] * 2,
            "*": ["Plain", "Proximal", "Plain_too"] * 2,
        }.items():
            assert [cell.method for cell in matching(chosen, pattern)] == methods

    def test_many_methods_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for named, said in ((3, "Plain, Proximal, Plain_too"), (2, "Plain, Proximal and 1 more")):
            monkeypatch.setattr(plan, "NAMED", named)
            assert plan.methods_by_dataset(self.cells()) == f"Digits: {said}"

    def test_what_is_unknown_is_named(self) -> None:
        with pytest.raises(UserError, match=r"table or figure of toy 'tabel1'\. Did you mean 'table1'"):
            self.cells("tabel1")
        with pytest.raises(UserError, match="unknown dataset of toy 'digits'"):
            self.cells(datasets="digits")
        with pytest.raises(UserError, match="no cell matches 'nothing'; `fedbench list`"):
            matching(self.cells(), "nothing")

    @pytest.mark.parametrize("kind", ["tables", "figures"])
    def test_a_table_or_figure_that_names_no_methods_has_all_and_one_of_data_none(self, kind: str) -> None:
        (target,) = PAPER[kind]
        rewrite(**{kind: lambda targets: targets[target].pop("methods")})
        assert {cell.method for cell in self.cells(target)} == {"Plain", "Proximal", "Plain_too"}
        about = {"title": "Data", "datasets": ["Digits"], "metrics": ["n_samples"], "rows": ["dataset"]}
        rewrite(tables={name: about | {"kind": name} for name in ("data", "facts")})
        assert self.cells("data") == self.cells("facts") == []
