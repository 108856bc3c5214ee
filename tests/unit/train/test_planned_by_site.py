"""What a paper asks of sites is known from the data before anything trains: how many clients, and their names."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config, load_paper
from fedbench.study.plan import Plan
from fedbench.train import preflight

pytestmark = pytest.mark.usefixtures("project")


def cells(metrics: list[str], keys: str = "site: hospital\n", **data: Any) -> list[Cell]:
    """The cells of a table of three hospitals."""
    rows = [f"{n},{'ab'[n % 2]},{['Basel', 'Lyon', 'St. {X}, Turin'][n % 3]}" for n in range(60)]
    lines = ["dose,kind,hospital", *(row.replace("St. {X}, Turin", '"St. {X}, Turin"') for row in rows)]
    text = (
        "\n".join(lines)
        if keys
        else "\n".join(line.split(",")[0] + "," + line.split(",")[1] for line in lines)
    )
    Path("clinic.csv").write_text(text)
    Path("config/datasets").mkdir(exist_ok=True)
    Path("config/datasets/clinic.yaml").write_text(f"file: clinic.csv\nlabel: kind\n{keys}")
    paper = copy.deepcopy(PAPER)
    entry = {"data": {"dataset": "clinic", **data}, "network": {"name": "mlp", "options": {"hidden": [4]}}}
    paper["datasets"] = {"Digits": entry}
    paper["tables"]["table1"] |= {"datasets": ["Digits"], "metrics": metrics}
    del paper["figures"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return Plan(load_config(), "toy").cells("table1")


BY_SITE = {"partition": {"rule": "by_site"}}


def test_as_many_clients_as_sites_and_the_key_is_that_of_their_number() -> None:
    counted, given = (
        cells(["test_auc"], clients="sites", **BY_SITE),
        cells(["test_auc"], clients=3, **BY_SITE),
    )
    assert counted[0].runs[0].data.clients == 3
    assert [cell.key for cell in counted] == [cell.key for cell in given]
    preflight.check(counted)


def test_clients_of_sites_need_sites() -> None:
    with pytest.raises(UserError, match=r"data\.clients is sites, but 'clinic' does not say who owns"):
        cells(["test_auc"], keys="", clients="sites", **BY_SITE)


def test_another_number_of_clients_is_named_before_training() -> None:
    with pytest.raises(UserError, match=r"each of the 3 sites .* data\.clients is 4: set it to 3"):
        preflight.check(cells(["test_auc"], clients=4, **BY_SITE))


def test_one_metric_for_each_site() -> None:
    cells(["test_auc", "test_auc@sites", "worst_site_test_auc"], clients=3)
    result = load_paper("toy").tables["table1"].metrics
    assert result == [
        "test_auc", "test_auc@Basel", "test_auc@Lyon", "test_auc@St. {X}, Turin", "worst_site_test_auc",
    ]  # fmt: skip
    preflight.check(cells(["test_auc_h", "test_auc@sites", "site_std_test_auc"], clients=3))


@pytest.mark.parametrize("tests", ["all", "own"])
def test_datasets_that_are_joined_are_the_sites(tests: str) -> None:
    paper = copy.deepcopy(PAPER)
    paper["defaults"]["data"] |= {"sources": ["mnist"], "tests": tests}
    paper["tables"]["table1"] |= {"datasets": ["Digits"], "metrics": ["test_auc@sites"]}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    assert load_paper("toy").tables["table1"].metrics == ["test_auc@digits", "test_auc@mnist"]
    asked = Plan(load_config(), "toy").cells("table1")
    preflight.check(asked)


def test_a_method_for_two_classes_on_three_is_found_before_training() -> None:
    asked = cells(
        ["test_overall_accuracy"], clients=3, labels={"rule": "original"}, imbalance={"rule": "none"}
    )
    Path("clinic.csv").write_text(
        "\n".join(["dose,kind,hospital", *(f"{n},{'abc'[n % 3]},A" for n in range(60))])
    )
    run = asked[0].runs[0]
    preflight.check_runs([("", "Clinic", "Plain", run)])
    values = {"lr": 0.1, "lr_dual": 0.1, "beta_x": 0.9, "beta_y": 0.9, "score": "logit", "dual_step": "batch"}
    other = run.model_copy(update={"method": "local_sgdam", "params": values})
    with pytest.raises(
        UserError, match=r"'local_sgdam' is for two classes, and 'clinic' has 3: say which are positive"
    ):
        preflight.check_runs([("", "Clinic", "AUC", other)])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("test_auc@Basle", r"unknown site 'Basle'\. Did you mean 'Basel'\?"),
        ("test_auc@{X}", r"unknown site '\{X\}'"),
    ],
)
def test_a_site_that_nobody_has_is_found_before_training(metric: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        preflight.check(cells([metric], "site: hospital\n", clients=2))
