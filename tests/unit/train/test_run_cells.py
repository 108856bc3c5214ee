"""Many cells one after another: one that fails stops no other, and the end says which and why."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedbench.commands.cli import app
from fedbench.errors import UserError, WriteError
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train import training, workers

pytestmark = pytest.mark.usefixtures("project")
CELLS = [(p, method) for p in (2, 4) for method in ("Plain", "Proximal", "Plain_too")] + [(8, "Plain")]
NAMES = [f"toy/Digits/p{p}_imratio0.2/{method}" for p, method in CELLS]


def run(monkeypatch: pytest.MonkeyPatch, failing: Mapping[str, BaseException], pattern: str = "*") -> Any:
    """Call ``fedbench run`` with cells of which some raise an error and the others finish at once."""

    def train_cell(cell: Any, config: Any, store: Any, *told: Any) -> list[Record]:
        if cell.name in failing:
            raise failing[cell.name]
        status = ("diverged", "too large") if cell.name == NAMES[5] else ("finished", "")
        return [Record("0", {"seed": 0}, *status, {"test_auc": 0.5}, {}, {})]

    monkeypatch.setattr(training, "train_cell", train_cell)
    return CliRunner().invoke(app, ["run", pattern])


def test_the_others_are_trained_and_the_end_says_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = {NAMES[1]: UserError("no data"), NAMES[3]: ZeroDivisionError("division by zero")}
    result = run(monkeypatch, failing)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("[")] == [
        f"[{number}/7] {name}" for number, name in enumerate(NAMES, 1)
    ]
    assert lines[-1] == "cells: 5 of 7 done, 2 failed"
    assert f"[5/7] {NAMES[4]}  scale demo, 2 failed" in lines
    assert result.stderr[result.stderr.index("error: ") :].splitlines() == [
        "error: 2 of 7 cells failed:",
        f"  {NAMES[1]}: no data",
        f"    alone: fedbench run {NAMES[1]} --scale demo",
        f"  {NAMES[3]}: division by zero",
        f"    alone: fedbench run {NAMES[3]} --scale demo",
    ]
    assert "Traceback" in result.stderr, "of the error nobody expected"
    assert f"{NAMES[5]} seed 0: too large" in result.stderr


@pytest.mark.parametrize(
    ("pattern", "failing", "status", "error"),
    [
        ("*", {}, 3, ""),  # a seed diverged
        (NAMES[0], {}, 0, ""),
        (NAMES[0], {NAMES[0]: UserError("no data")}, 2, "error: no data\n"),
        ("*", {NAMES[1]: WriteError("the disk is full")}, 2, "error: the disk is full\n"),
        ("*", {NAMES[1]: KeyboardInterrupt()}, 130, ""),
    ],
    ids=["diverged", "done", "alone", "full disk", "Ctrl-C"],
)
def test_the_exit_status_says_how_it_ended(
    pattern: str, failing: dict[str, BaseException], status: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes nothing and Ctrl-C end the work at once."""
    result = run(monkeypatch, failing, pattern)
    assert result.exit_code == status and (result.stderr == error or status in (3, 130))
    assert ("[3/7]" in result.stdout) == (status == 3)


@pytest.mark.parametrize(("how", "says"), [("true", "C++ compiler"), ("graph", "compile: graph needs a GPU")])
def test_what_cannot_be_compiled_ends_the_work_before_it_begins(
    how: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = CliRunner().invoke(app, ["run", "*", "--set", f"compile={how}", "--set", "device=cpu"])
    assert result.exit_code == 2 and says in result.stderr and result.stdout == ""


def test_the_seeds_that_are_left_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    @contextlib.contextmanager
    def counted(config: Config, cores: int) -> Iterator[workers.Workers]:
        asked.append(cores)
        yield workers.Workers(config, cores)

    monkeypatch.setattr(workers, "workers", counted)
    for seeds, cores in (("[1]", "3"), ("[1, 2, 3]", "3"), ("[1, 2, 3, 4, 5]", "1")):
        CliRunner().invoke(app, ["run", NAMES[0], "--cores", cores, "--set", f"seeds={seeds}"])
    assert asked == [2], "one is trained here"
    assert len(Store().keys()) == 5


def test_the_log_of_a_number_says_which_file_and_which_command() -> None:
    given = ["--set", "train.iterations=4", "--set", "seeds=[1, 2]"]
    said = CliRunner().invoke(app, ["run", NAMES[0], *given]).stdout
    result = Path("results/cells/demo") / f"{NAMES[0]}.json"
    for run in json.loads(result.read_text())["runs"]:
        folder = Path("results/runs") / run["key"]
        assert f"  seed {run['seed']}: finished" in said and f"({folder})" in said and folder.is_dir()
    (line,) = [line for line in said.splitlines() if line.startswith(f"  {result}, made by: ")]
    command = shlex.split(line.partition("made by: ")[2])
    assert command[:3] == ["fedbench", "run", NAMES[0]]
    before = result.read_bytes()
    shutil.rmtree(folder)  # one of its two runs is trained again
    CliRunner().invoke(app, command[1:])
    assert result.read_bytes() == before, "trained again to the same bytes"

    result.unlink()
    left = folder.with_name(f"{folder.name}.unfinished")
    left.mkdir()  # a process was killed before it cleaned up
    # of what is in the store, without PyTorch, which takes seconds to import
    program = "import sys; sys.modules['torch'] = None; from fedbench.commands.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *command[1:]], check=True)
    assert result.read_bytes() == before, "the command in the log makes the same file"
    assert not left.exists()
