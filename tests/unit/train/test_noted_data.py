"""What notes below a table say of its data: samples of each site, imputed cells, labels that ran out."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from toy import PAPER, write_yaml

from fedbench.data.partition import make_partition
from fedbench.data.prepared import prepare
from fedbench.report import described, facts
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

pytestmark = pytest.mark.usefixtures("project")


def dealt(rows: list[str], **data: object) -> list[Cell]:
    """The cells of a table of patients (dose, kind, hospital), prepared and dealt."""
    Path("clinic.csv").write_text("\n".join(["dose,kind,hospital", *rows]))
    Path("config/datasets").mkdir(exist_ok=True)
    keys = "label: kind\npositive: ill\nsite: hospital\nmissing: median\n"
    Path("config/datasets/clinic.yaml").write_text(f"file: clinic.csv\n{keys}")
    paper = copy.deepcopy(PAPER)
    entry = {"data": {"dataset": "clinic", **data}, "network": {"name": "mlp", "options": {"hidden": [4]}}}
    paper["datasets"] = {"Digits": entry}
    paper["tables"]["table1"] |= {
        "datasets": ["Digits"],
        "metrics": ["test_auc@sites", "worst_site_test_auc"],
    }
    del paper["figures"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    cells = Plan(load_config(), "toy").cells("table1")
    prepare("clinic", "data")
    for run in {cell.runs[0].data.partition_key(cell.runs[0].seed): cell.runs[0] for cell in cells}.values():
        make_partition(run.data, run.seed, "data")
    return cells


def test_samples_of_each_site_are_counted_and_sites_without_an_auc_are_named() -> None:
    rows = [f"{n},{'ill' if n % 2 else 'well'},{'Basel' if n < 40 else 'Lyon'}" for n in range(60)]
    rows += [f"{n},well,Kreis" for n in range(25)]
    labels = {"rule": "original"}
    cells = dealt(
        rows, clients="sites", partition={"rule": "by_site"}, labels=labels, imbalance={"rule": "none"}
    )
    counts, worst = described.sites(cells, Path("data"))
    assert counts.startswith("Digits: training + test samples (positive ones) by site: ")
    assert counts.endswith("Basel 32 (16) + 8 (4), Kreis 20 (0) + 5 (0), Lyon 16 (8) + 4 (2).")
    assert "over 2 of 3 sites; none of the 5 test samples of Kreis are positive" in worst
    assert described.sites(cells, Path("elsewhere")) == []


def test_a_table_of_facts_counts_samples_of_each_site() -> None:
    rows = [f"{n},{'ill' if n % 2 else 'well'},{'Basel' if n < 40 else 'Lyon'}" for n in range(60)]
    dealt(
        rows,
        clients="sites",
        partition={"rule": "by_site"},
        labels={"rule": "original"},
        imbalance={"rule": "none"},
    )
    paper = yaml.safe_load(Path("config/papers/toy.yaml").read_text())
    paper["tables"]["table2"] = {
        "title": "Patients",
        "kind": "facts",
        "datasets": ["Digits"],
        "splits": ["Training", "Test"],
        "metrics": ["n_samples", "n_samples@sites", "n_positive@sites"],
        "rows": ["metric"],
        "columns": ["split"],
    }
    write_yaml(Path("config/papers/toy.yaml"), paper)
    plan = Plan(load_config(overrides={"data_dir": "data"}), "toy")
    counted = facts.facts_table(plan, "table2").rows
    values = {(row.metric, row.split): row.value for row in counted.itertuples()}
    assert values["n_samples", "Training"] == 48
    assert values["n_samples", "Test"] == 12
    assert values["n_samples@Basel", "Training"] == 32
    assert values["n_positive@Lyon", "Test"] == 2
    facts.export(plan, "table2")
    shutil.rmtree("data")
    assert facts.facts_table(plan, "table2").rows.equals(counted)


def test_imputed_cells_are_counted_by_column() -> None:
    rows = [f"{'' if n < 7 else n},{'ill' if n % 2 else 'well'},Basel" for n in range(60)]
    lines = described.tasks(dealt(rows, clients=2, partition={"rule": "even"}), Path("data"))
    assert any("dose (7)" in line and "median" in line for line in lines)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_of_a_rare_label_that_dirichlet_gives_to_a_few_clients_a_note_is_made(share: float) -> None:
    ill = np.arange(400) < 400 * share
    rows = [f"{n},{'ill' if sick else 'well'},Basel" for n, sick in enumerate(ill)]
    rule = {"rule": "dirichlet", "delta": 100_000.0}
    cells = dealt(rows, clients=4, partition=rule, labels={"rule": "original"}, imbalance={"rule": "none"})
    noted = [line for line in described.tasks(cells, Path("data")) if "`dirichlet`" in line]
    assert ["2 of 4 clients have no positive sample" in line for line in noted] == [True] * (share < 0.5)
