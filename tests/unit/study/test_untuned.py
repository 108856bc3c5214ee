"""Methods that no trial tuned for a dataset are named: in the list, before training and below the table."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

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


def shown(*arguments: str) -> str:
    return " ".join(call("show", *arguments).split())


def tune(*methods: str) -> None:
    chosen = {name: {"mu": 0.1} if name == "Proximal" else {"lr": 0.2} for name in methods}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": chosen})


def test_they_are_named_in_the_list_before_training_and_below_the_table_with_the_cure() -> None:
    names = ("Plain", "Proximal", "Plain_too")
    assert call("list", PLACE).splitlines() == [f"{PLACE}/{name}  0/2 runs, not tuned" for name in names]
    assert NOTE not in shown("table1", "--notes"), "of what has no number"
    tune("Plain")
    assert call("list", PLACE).splitlines()[0] == f"{PLACE}/Plain  0/2 runs"
    first, second, *_ = call("run", PLACE).splitlines()
    assert first.startswith(
        "warning: 2 of 3 cells are not tuned for their dataset (Digits: Proximal, Plain_too)"
    )
    assert first.endswith("First: fedbench tune Digits --paper toy") and second.startswith("[1/3]")
    assert f"{NOTE} (Digits: Proximal, Plain_too)." in shown("table1")
    tune(*names)
    plan = Plan(load_config())
    assert plan.untuned_warning(plan.cells()) == "" and NOTE not in shown("table1", "--notes")


def untuned(paper: dict[str, Any], **given: Any) -> set[str]:
    write_yaml(Path("config/papers/toy.yaml"), paper)
    plan = Plan(load_config(overrides=given))
    return {cell.method for cell in plan.untuned(plan.cells())}


def test_published_values_need_no_trials_where_they_count_and_fixed_ones_nowhere() -> None:
    paper = copy.deepcopy(PAPER)
    paper["methods"]["Plain"]["published"] = ["lr"]
    paper["methods"]["Proximal"]["published"] = ["lr"]  # its mu is not
    paper["methods"]["Plain_too"]["grid"] = {}
    assert untuned(paper, constants="paper") == {"Proximal"}
    assert untuned(paper, constants="tuned") == {"Plain", "Proximal"}
    paper = copy.deepcopy(PAPER)
    paper["settings"]["step"] = {"sets": ["params.lr"], "default": 0.1, "label": "step size"}
    paper["datasets"]["Digits"]["fixed"] = {"params": {"mu": 0.5}}
    assert untuned(paper) == {"Plain_too"}


def test_a_leaderboard_says_it_and_names_datasets_that_were_prepared_anew(prepared_digits: Path) -> None:
    paper = copy.deepcopy(PAPER)
    board = {"title": "All", "kind": "leaderboard", "datasets": ["Digits"], "metrics": ["test_auc"]}
    paper["tables"]["board"] = {**board, "board": {"random": "Plain"}, "settings": {"p": [2]}}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    shutil.copytree(prepared_digits, "data")
    config = Path("config/config.yaml")
    config.write_text(config.read_text().replace(str(prepared_digits), "data"))
    tune("Proximal")
    call("run", PLACE)
    board_shown = shown("board")
    assert f"{NOTE} (Digits: Plain, Plain_too)." in board_shown and "do not compare" not in board_shown

    summary = read_summary("digits", "data")
    sealed_json.write(Path("data/prepared/digits.json"), {**summary, "sha256": "0" * 64})
    tune("Plain", "Proximal", "Plain_too")
    board_shown = shown("board")
    assert NOTE not in board_shown
    assert (
        "Numbers that do not compare: Digits (" in board_shown and "`fedbench forget DATASET`" in board_shown
    )
