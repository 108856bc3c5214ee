"""What a dry run has checked is not checked again, until something that the check reads may differ."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedbench.plan.cells import Cell
from fedbench.plan.configuration import load_config
from fedbench.plan.plan import Plan
from fedbench.specs import StartSpec
from fedbench.workflow import checked

pytestmark = pytest.mark.usefixtures("project")


def cells(**given: Any) -> list[Cell]:
    return Plan(load_config(overrides=given), "toy").cells("table1")


def test_these_cells_and_no_others_with_the_files_of_now() -> None:
    asked, others = cells(), cells(seeds=[5])
    assert [cell.name for cell in asked] == [cell.name for cell in others]
    assert not checked.passed(asked)
    checked.note(asked)
    assert checked.passed(asked) and not checked.passed(others) and not checked.passed(asked[:1])
    checked.note(others)
    assert checked.passed(asked) and checked.passed(others)
    os.utime("config/scales/demo.yaml", (1, 1))
    assert not checked.passed(asked)
    checked.note(asked)
    assert checked.passed(asked) and len(checked.FILE.read_text().splitlines()) == 1, (
        "the others are of no use"
    )


def test_data_that_differ_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    checked.note(cells())
    monkeypatch.setattr(checked.datasets, "content", lambda name: "another file")
    assert not checked.passed(cells())


@pytest.mark.parametrize("unseen", ["a file of weights", "a method of another package"])
def test_what_cannot_be_seen_to_change_is_always_checked(
    unseen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = cells()
    if unseen == "a file of weights":
        start = StartSpec(weights="a.pt", sha256="0" * 64)
        runs = [run.model_copy(update={"start": start}) for run in asked[0].runs]
        asked[0] = asked[0].model_copy(update={"runs": runs})
    else:
        monkeypatch.setattr(checked, "entry_points", lambda: SimpleNamespace(groups={"fedbench.algorithms"}))
    checked.note(asked)
    assert not checked.passed(asked) and not Path(checked.FILE).exists()
