"""What notes below a table say of its data: samples of each site, imputed cells, labels that ran out."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clinic import AS_IT_IS, BY_SITE, cells, write_clinic
from toy import write_yaml

from fedbench.data.partition import make_partition
from fedbench.data.prepared import prepare
from fedbench.report import described, facts
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

pytestmark = pytest.mark.usefixtures("project")
EVEN = {"clients": 2, "partition": {"rule": "even"}}
ROWS = [f"{n},{'ill' if n % 2 else 'well'},{'Basel' if n < 40 else 'Lyon'}" for n in range(60)]
COUNTED: dict[str, Any] = {
    "title": "Patients", "kind": "facts", "datasets": ["Digits"], "splits": ["Training", "Test"],
    "metrics": ["n_samples", "n_samples@sites", "n_positive@sites"], "rows": ["metric"], "columns": ["split"],
}  # fmt: skip


def dealt(rows: Iterable[str], data: dict[str, Any]) -> list[Cell]:
    """The cells of a table of patients (dose, kind, hospital), prepared and dealt."""
    Path("clinic.csv").write_text("\n".join(["dose,kind,hospital", *rows]))
    keys = "file: clinic.csv\nlabel: kind\npositive: ill\nsite: hospital\nmissing: median\n"
    paper = write_clinic(keys, {"metrics": ["test_auc@sites", "worst_site_test_auc"]}, data)
    paper["tables"]["table2"] = COUNTED
    write_yaml(Path("config/papers/toy.yaml"), paper)
    prepare("clinic", "data")
    result = cells()
    for run in {cell.runs[0].data.partition_key(cell.runs[0].seed): cell.runs[0] for cell in result}.values():
        make_partition(run.data, run.seed, "data")
    return result


def test_samples_of_each_site_are_counted_and_sites_without_an_auc_are_named() -> None:
    planned = dealt([*ROWS, *(f"{n},well,Kreis" for n in range(25))], BY_SITE | AS_IT_IS)
    counts, worst = described.sites(planned, Path("data"))
    assert counts.endswith("Basel 32 (16) + 8 (4), Kreis 20 (0) + 5 (0), Lyon 16 (8) + 4 (2).")
    assert "over 2 of 3 sites; none of the 5 test samples of Kreis are positive" in worst
    assert described.sites(planned, Path("elsewhere")) == []


def test_a_table_of_facts_counts_samples_of_each_site() -> None:
    dealt(ROWS, BY_SITE | AS_IT_IS)
    plan = Plan(load_config(overrides={"data_dir": "data"}), "toy")
    counted = facts.facts_table(plan, "table2").rows
    values = {(row.metric, row.split): row.value for row in counted.itertuples()}
    expected = {
        ("n_samples", "Training"): 48, ("n_samples", "Test"): 12, ("n_samples@Basel", "Training"): 32,
        ("n_positive@Lyon", "Test"): 2,
    }  # fmt: skip
    assert values.items() >= expected.items()
    facts.export(plan, "table2")
    shutil.rmtree("data")
    assert facts.facts_table(plan, "table2").rows.equals(counted)


def test_imputed_cells_are_counted_by_column() -> None:
    rows = [f"{'' if n < 7 else n},{'ill' if n % 2 else 'well'},Basel" for n in range(60)]
    lines = described.tasks(dealt(rows, EVEN), Path("data"))
    assert any("dose (7)" in line and "median" in line for line in lines)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_of_a_rare_label_that_dirichlet_gives_to_a_few_clients_a_note_is_made(share: float) -> None:
    ill = np.arange(400) < 400 * share
    rows = [f"{n},{'ill' if sick else 'well'},Basel" for n, sick in enumerate(ill)]
    rule = {"rule": "dirichlet", "delta": 100_000.0}
    planned = dealt(rows, {"clients": 4, "partition": rule, **AS_IT_IS})
    noted = [line for line in described.tasks(planned, Path("data")) if "`dirichlet`" in line]
    assert ["2 of 4 clients have no positive sample" in line for line in noted] == [True] * (share < 0.5)
