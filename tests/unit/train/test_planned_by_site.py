"""What a paper asks of sites is known from the data before anything trains: how many clients, and their names."""

from __future__ import annotations

import copy
import csv
from pathlib import Path
from typing import Any

import clinic
import pytest
from clinic import AS_IT_IS, BY_SITE, write_clinic
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper
from fedbench.train import preflight

pytestmark = pytest.mark.usefixtures("project")
SITES = ("Basel", "Lyon", "St. {X}, Turin")


def cells(metrics: list[str], site: bool = True, kinds: str = "ab", **data: Any) -> list[Cell]:
    """The cells of a table of three hospitals."""
    with Path("clinic.csv").open("w") as file:
        rows = [(n, kinds[n % len(kinds)], SITES[n % 3]) for n in range(60)]
        csv.writer(file).writerows([("dose", "kind", "hospital"), *rows])
    named = "site: hospital\n" if site else ""
    write_clinic(f"file: clinic.csv\nlabel: kind\n{named}", {"metrics": metrics}, data)
    return clinic.cells()


def test_as_many_clients_as_sites_and_the_key_is_that_of_their_number() -> None:
    counted, given = (cells(["test_auc"], **BY_SITE | {"clients": of}) for of in ("sites", 3))
    assert counted[0].runs[0].data.clients == 3
    assert [cell.key for cell in counted] == [cell.key for cell in given]
    preflight.check(counted)


@pytest.mark.parametrize(
    ("metric", "data", "said"),
    [
        (
            "test_auc",
            BY_SITE | {"site": False},
            r"data\.clients is sites, but 'clinic' does not say who owns",
        ),
        ("test_auc", BY_SITE | {"clients": 4}, r"each of the 3 sites .* data\.clients is 4: set it to 3"),
        ("test_auc@Basle", {"clients": 2}, r"unknown site 'Basle'\. Did you mean 'Basel'\?"),
        ("test_auc@{X}", {"clients": 2}, r"unknown site '\{X\}'"),
    ],
)
def test_what_the_sites_do_not_allow_is_found_before_training(
    metric: str, data: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        preflight.check(cells([metric], **data))


def test_one_metric_for_each_site() -> None:
    cells(["test_auc", "test_auc@sites", "worst_site_test_auc"], clients=3)
    of_sites = [f"test_auc@{site}" for site in SITES]
    assert load_paper("toy").tables["table1"].metrics == ["test_auc", *of_sites, "worst_site_test_auc"]
    preflight.check(cells(["test_auc_h", "test_auc@sites", "site_std_test_auc"], clients=3))


@pytest.mark.parametrize("tests", ["all", "own"])
def test_datasets_that_are_joined_are_the_sites(tests: str) -> None:
    paper = copy.deepcopy(PAPER)
    paper["defaults"]["data"] |= {"sources": ["mnist"], "tests": tests}
    paper["tables"]["table1"] |= {"datasets": ["Digits"], "metrics": ["test_auc@sites"]}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    assert load_paper("toy").tables["table1"].metrics == ["test_auc@digits", "test_auc@mnist"]
    preflight.check(clinic.cells())


def test_a_method_for_two_classes_on_three_is_found_before_training() -> None:
    run = cells(["test_overall_accuracy"], kinds="abc", clients=3, **AS_IT_IS)[0].runs[0]
    preflight.check_runs([("", "Clinic", "Plain", run)])
    values = {"lr": 0.1, "lr_dual": 0.1, "beta_x": 0.9, "beta_y": 0.9, "score": "logit", "dual_step": "batch"}
    other = run.model_copy(update={"method": "local_sgdam", "params": values})
    with pytest.raises(UserError, match="'local_sgdam' is for two classes, and 'clinic' has 3"):
        preflight.check_runs([("", "Clinic", "AUC", other)])
