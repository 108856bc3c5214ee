"""Methods that no trial tuned for a dataset are named: in the list, before training and below the table."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
from toy import PAPER, write_yaml
from typer.testing import CliRunner

from fedbench import sealed_json
from fedbench.commands.cli import app
from fedbench.data.prepared import read_summary
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

pytestmark = pytest.mark.usefixtures("project")
PLACE = "toy/Digits/p2_imratio0.2"
NOTE = "Not tuned for this dataset: the order of methods says nothing"


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def tune(**chosen: dict[str, float]) -> None:
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": chosen})


def test_the_list_marks_what_would_run_untuned() -> None:
    assert call("list", PLACE).splitlines() == [
        f"{PLACE}/{name}  0/2 runs, not tuned" for name in ("Plain", "Proximal", "Plain_too")
    ]
    tune(Plain={"lr": 0.2}, Plain_too={"lr": 0.2})
    assert [line for line in call("list", PLACE).splitlines() if "not tuned" in line] == [
        f"{PLACE}/Proximal  0/2 runs, not tuned"
    ]


def test_one_line_before_training_and_one_below_the_table_name_them_and_the_cure() -> None:
    tune(Plain={"lr": 0.2})
    first, second, *_ = call("run", PLACE).splitlines()
    assert first == (
        "warning: 2 of 3 cells are not tuned for their dataset (Digits: Proximal, Plain_too): the order of methods "
        "will say nothing. First: fedbench tune Digits --paper toy"
    )
    assert second.startswith("[1/3]")
    assert f"{NOTE} (Digits: Proximal, Plain_too)." in " ".join(call("show", "table1").split())
    tune(Plain={"lr": 0.2}, Proximal={"mu": 0.1}, Plain_too={"lr": 0.1})
    plan = Plan(load_config())
    assert plan.untuned_warning(plan.cells()) == ""
    assert NOTE not in " ".join(call("show", "table1", "--notes").split())


def test_a_table_says_nothing_of_what_has_no_number() -> None:
    assert NOTE not in " ".join(call("show", "table1", "--notes").split())


def test_published_values_need_no_trials_where_they_count() -> None:
    paper = copy.deepcopy(PAPER)
    paper["methods"]["Plain"]["published"] = ["lr"]
    paper["methods"]["Proximal"]["published"] = ["lr"]  # its mu is not
    paper["methods"]["Plain_too"]["grid"] = {}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    for constants, names in (("paper", {"Proximal"}), ("tuned", {"Plain", "Proximal"})):
        plan = Plan(load_config(overrides={"constants": constants}))
        assert {cell.method for cell in plan.untuned(plan.cells())} == names


def test_what_the_setting_or_the_dataset_fixes_needs_no_trials() -> None:
    paper = copy.deepcopy(PAPER)
    paper["settings"]["step"] = {"sets": ["params.lr"], "default": 0.1, "label": "step size"}
    paper["datasets"]["Digits"]["fixed"] = {"params": {"mu": 0.5}}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    plan = Plan(load_config())
    assert {cell.method for cell in plan.untuned(plan.cells())} == {"Plain_too"}


def test_a_leaderboard_says_it_and_names_datasets_that_were_prepared_anew(prepared_digits: Path) -> None:
    paper = copy.deepcopy(PAPER)
    board = {"title": "All", "kind": "leaderboard", "datasets": ["Digits"], "metrics": ["test_auc"]}
    paper["tables"]["board"] = {**board, "board": {"random": "Plain"}, "settings": {"p": [2]}}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    shutil.copytree(prepared_digits, "data")
    config = Path("config/config.yaml")
    config.write_text(config.read_text().replace(str(prepared_digits), "data"))
    tune(Proximal={"mu": 0.1})
    call("run", PLACE)
    shown = " ".join(call("show", "board").split())
    assert f"{NOTE} (Digits: Plain, Plain_too)." in shown and "do not compare" not in shown

    summary = read_summary("digits", "data")
    sealed_json.write(Path("data/prepared/digits.json"), {**summary, "sha256": "0" * 64})
    tune(Plain={"lr": 0.1}, Proximal={"mu": 0.1}, Plain_too={"lr": 0.1})
    shown = " ".join(call("show", "board").split())
    assert NOTE not in shown
    assert "Numbers that do not compare: Digits (" in shown and "`fedbench forget DATASET`" in shown
