"""What cells ask for is checked before the first of them trains, and the place in the YAML is named."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml

from fedbench.contract.method import FederatedMethod
from fedbench.errors import UserError
from fedbench.jobs import preflight, session, tune
from fedbench.plan.cells import Cell, cells_of
from fedbench.plan.configuration import load_config
from fedbench.store.runs import Store

pytestmark = pytest.mark.usefixtures("project")
FILE = r"^config/papers/toy\.yaml: "


def cells(change: Any = None) -> list[Cell]:
    paper = copy.deepcopy(PAPER)
    if change is not None:
        change(paper)
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return cells_of(load_config(), "toy", "table1")


def changed(*place: str, value: Any) -> Any:
    """Set one place of the paper."""

    def change(paper: dict[str, Any]) -> None:
        inner: Any = paper
        for key in place[:-1]:
            inner = inner.setdefault(key, {})
        inner[place[-1]] = value

    return change


def test_a_sound_paper_passes() -> None:
    preflight.check(cells())


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("methods", "Proximal", "params"), {"lr": 0.1}, r"methods\.Proximal: method 'fedprox' needs mu"),
        (
            ("methods", "Proximal", "params", "mue"),
            1,
            r"methods\.Proximal: .*unknown hyper-parameter 'mue'\. Did you mean 'mu'",
        ),
        (("methods", "Plain", "params", "lr"), "fast", r"methods\.Plain: .*lr is a number, not 'fast'"),
        (("methods", "Plain", "algorithm"), "fedavgg", r"methods\.Plain: unknown method 'fedavgg'"),
        (
            ("datasets", "Digits", "network", "name"),
            "mlpp",
            r"datasets\.Digits\.network: unknown network 'mlpp'",
        ),
        (("datasets", "Digits", "network", "options", "hiden"), [3], r"datasets\.Digits\.network: .*'hiden'"),
        (
            ("datasets", "Digits", "network", "options", "hidden"),
            ["a"],
            r"datasets\.Digits\.network: network 'mlp'",
        ),
        (
            ("datasets", "Digits", "network"),
            {"name": "cnn", "options": {"kernel": 9}},
            r"datasets\.Digits\.network: network 'cnn': images of 8 x 8 pixels are too small",
        ),
        (
            ("defaults", "data", "partition"),
            {"rule": "dirichlet"},
            r"datasets\.Digits\.data\.partition: partition rule 'dirichlet' needs delta",
        ),
        (
            ("defaults", "data", "partition"),
            {"rule": "evn"},
            r"datasets\.Digits\.data\.partition: unknown partition rule 'evn'",
        ),
        (("datasets", "Digits", "task"), {"name": "clasification"}, r"datasets\.Digits: task: unknown task"),
    ],
)
def test_a_slip_is_named_with_its_place_and_nothing_is_trained(
    place: tuple[str, ...], value: Any, message: str
) -> None:
    wrong = cells(changed(*place, value=value))
    with pytest.raises(UserError, match=FILE + message):
        session.train_all(wrong, load_config(), Store())
    assert not Path("results").exists()


def test_hospitals_are_sites_and_without_them_the_rule_is_a_slip() -> None:
    """codasca's Tables 3 and 4, which no scale but that of the paper runs."""
    config = Path(__file__).parents[3] / "config"
    asked = load_config(config / "config.yaml", {"scale": "paper"})
    for table in ("table3", "table4"):
        preflight.check(cells_of(asked, "codasca", table, config))
    alone = cells(changed("defaults", "data", "partition", value={"rule": "sites"}))
    with pytest.raises(UserError, match=r"'sites' needs several datasets: name the others in data\.sources"):
        preflight.check(alone)


def test_all_mistakes_are_told_at_once_and_each_once() -> None:
    def change(paper: dict[str, Any]) -> None:
        paper["methods"]["Plain"]["params"] = {}
        paper["methods"]["Proximal"]["params"] = {"lr": True, "mu": 1}

    with pytest.raises(UserError) as raised:
        preflight.check(cells(change))
    lines = str(raised.value).splitlines()
    assert len(lines) == 2, "though each method has two cells"
    assert "method 'fedavg' needs lr" in lines[0] and "lr is a number, not True" in lines[1]


def test_a_method_is_held_against_its_task_and_against_who_takes_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nested(paper: dict[str, Any]) -> None:
        paper["methods"]["Plain"] |= {
            "algorithm": "local_scgd",
            "params": {"lr": 0.1, "beta_in": 0.6, "state": "own"},
        }

    with pytest.raises(
        UserError, match=r"methods\.Plain on datasets\.Digits: method 'local_scgd' works on nested draws"
    ):
        preflight.check(cells(nested))

    def absent(paper: dict[str, Any]) -> None:
        paper["methods"]["Plain_too"]["train"] = {"participation": {"rule": "random", "clients": 2}}

    monkeypatch.setattr(FederatedMethod, "partial", False)
    with pytest.raises(UserError, match=r"methods\.Plain_too .*needs all clients in every round"):
        preflight.check(cells(absent))


def test_what_a_cell_starts_from_is_checked_too() -> None:
    def change(paper: dict[str, Any]) -> None:
        paper["methods"]["First"] = {"algorithm": "fedavg", "params": {"l": 1}, "train": {"keep_model": True}}
        for name in ("Plain", "Proximal", "Plain_too"):
            paper["methods"][name]["start"] = {"cell": {"method": "First"}}

    with pytest.raises(UserError, match="unknown hyper-parameter 'l'"):
        preflight.check(cells(change))


def test_every_trial_of_every_method_is_checked_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cells(changed("methods", "Plain_too", "grid", value={"lr, momentumm": [[0.1, 0.5]] * 4}))
    monkeypatch.setattr(tune, "train_run", lambda *args: pytest.fail("trained"))
    with pytest.raises(
        UserError, match=r"toy\.yaml: methods\.Plain_too: .*unknown hyper-parameter 'momentumm'"
    ):
        tune.tune_dataset(load_config(), "toy", "Digits", None, print)


def test_the_papers_as_shipped_pass() -> None:
    config = Path(__file__).parents[3] / "config"
    for paper in sorted(path.stem for path in (config / "papers").glob("*.yaml")):
        for scale in ("demo", "reduced"):
            asked = load_config(config / "config.yaml", {"scale": scale})
            preflight.check(cells_of(asked, paper, None, config))
