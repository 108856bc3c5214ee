"""Requests are written when what they ask for changes, and a dry run leaves none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.workflow import requests
from fedbench.workflow.requests import Requests

TARGET = ("toy", "table1")
DRY = """
from fedbench.workflow.requests import Requests
dry = Requests(passing=True)
print(open(dry.ask(("toy", "table1"), {"config": 2})).read(), open(dry.ask(("new",), {}, anew=True)).read())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("damage", [None, "", "{", "[]", '{"asked": "now", "config": 2}'])
def test_what_is_no_request_for_the_same_is_written_again(damage: str | None) -> None:
    path = Path(Requests().ask(TARGET, {"config": 1}))
    assert path == requests.path_of(*TARGET)
    os.utime(path, (1, 1))
    Requests().ask(TARGET, {"config": 1})
    assert path.stat().st_mtime == 1
    path.unlink() if damage is None else path.write_text(damage)
    Requests().ask(TARGET, {"config": 1})
    assert path.stat().st_mtime > 1 and json.loads(path.read_text())["config"] == 1


def test_one_that_is_anew_is_written_once_in_each_call_and_none_by_a_job() -> None:
    texts = list[str]()
    for call in (Requests(), Requests()):
        for _ in range(2):
            texts.append(Path(call.ask(("training",), {}, anew=True)).read_text())
    assert texts[0] == texts[1] != texts[2] == texts[3]
    assert not Path(Requests(frozen=True).ask(TARGET, {"config": 1})).exists()
    with pytest.raises(UserError, match=r"none\.json is no request"):
        requests.config_of(Path("none.json"))


def test_a_dry_run_leaves_what_was_there_with_its_times() -> None:
    path = Path(Requests().ask(TARGET, {"config": 1}))
    before = path.read_bytes()
    os.utime(path, (1, 1))
    said = subprocess.run([sys.executable, "-c", DRY], capture_output=True, text=True, check=True).stdout
    assert '"config": 2' in said
    assert path.read_bytes() == before and path.stat().st_mtime == 1
    assert [*requests.FOLDER.rglob("*.json")] == [path]
