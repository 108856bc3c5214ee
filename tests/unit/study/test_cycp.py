"""The paper cycp as it is configured: every printed AUC has its cell, and every run divides into cycles."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from fedbench.results.axes import axes_placed
from fedbench.spec import TrainSpec
from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan

ROOT = Path(__file__).parents[3]
CONFIG_DIR = ROOT / "config"
PRINTED = ("table1", "table2", "table3", "table4", "table5", "table8", "table9")


def cells_at(scale: str, target: str | None = None) -> list[Cell]:
    config = configuration.load_config(overrides={"scale": scale})
    return Plan(config, "cycp").cells(target)


@pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
def test_every_run_is_a_whole_number_of_cycles(scale: str) -> None:
    """Also with other numbers of local steps, groups and clients; decays fall inside."""
    result = cells_at(scale)
    assert len(result) > 30
    for cell in result:
        run = cell.runs[0]
        train, groups = run.train, run.train.participation.groups
        assert train.iterations and train.period and groups and train.participation.clients
        rounds, rest = divmod(train.iterations, train.period)
        assert rest == 0 and rounds % groups == 0, cell.name
        train.participation.check(run.data.clients)


@pytest.mark.parametrize("table", PRINTED)
def test_100_epochs_are_100_cycles_whatever_the_number_of_groups(table: str) -> None:
    """Insurance has five groups; stages of 10, 20, 40 and 30 cycles."""
    for cell in cells_at("paper", table):
        train = cell.runs[0].train
        assert train.iterations and train.period and train.participation.groups
        assert train.iterations / train.period / train.participation.groups == 100, cell.name


@pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
def test_methods_of_a_table_differ_in_what_they_are_alone(scale: str) -> None:
    """The same data, rounds, steps and numbers of clients for all; RS draws at random, CyCp by group."""
    shared = ("iterations", "period", "batch_size", "evaluations", "select", "augment", "normalize")
    for cell in cells_at(scale, "table1"):
        single = next(other for other in cells_at(scale, "table1") if other.dataset == cell.dataset)
        mine, first = cell.runs[0], single.runs[0]
        assert mine.data == first.data and mine.network == first.network
        assert all(getattr(mine.train, name) == getattr(first.train, name) for name in shared)
        who = mine.train.participation
        assert who.rule == ("random" if cell.method.startswith("RS") else "cyclic")
        assert (who.clients, who.groups) == (
            first.train.participation.clients,
            first.train.participation.groups,
        )
    rs, cycp = (
        next(cell.runs[0] for cell in cells_at("paper", "table1") if cell.method == name)
        for name in ("RS-Pairwise", "CyCp-Pairwise")
    )
    assert {name for name in rs.params if rs.params[name] != cycp.params[name]} == {"pool"}
    changed = {
        name for name in TrainSpec.model_fields if getattr(rs.train, name) != getattr(cycp.train, name)
    }
    assert changed == {"participation"} and rs.method == cycp.method


def test_table_9_removes_positives_three_times_and_the_others_once() -> None:
    draws = {
        table: {run.data.draw for cell in cells_at("paper", table) for run in cell.runs}
        for table in ("table1", "table9")
    }
    assert draws == {"table1": {0}, "table9": {0, 1, 2}}


def test_the_engine_knows_no_method_of_the_paper() -> None:
    names = ("a_fedavg", "a_scaffold", "pairwise", "coda_plus", "minimax", "passive")
    for path in sorted((ROOT / "src" / "fedbench" / "engine").glob("*.py")):
        text = path.read_text().lower()
        assert not [name for name in names if name in text], path


def test_table_8_has_a_column_for_each_dataset_and_number_of_clients_as_in_print() -> None:
    plan = Plan(configuration.load_config(overrides={"scale": "paper"}), "cycp")
    grid, spec = axes_placed(plan, "table8"), plan.table("table8")
    columns = [(dataset, clients) for dataset in ("CIFAR-10", "CIFAR-100") for clients in (50, 200)]
    assert [*itertools.product(*(grid[axis] for axis in spec.columns))] == columns
    assert spec.rows == ["method"]
