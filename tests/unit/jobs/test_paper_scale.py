"""``make paper-scale`` and ``make gpu``: which runs they train, in which order, for how long, and what they leave."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tarfile
import time
from itertools import groupby
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
import toy

from fedbench.store.runs import STORE
from forks import stand_ins

ROOT = Path(__file__).parents[3]


@pytest.fixture
def paper_scale(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("paper_scale")


def test_whole_rows_come_early_and_what_is_shipped_is_left_out(
    paper_scale: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    todo = list(paper_scale.missing(paper_scale.ORDER, "paper"))
    keys = [cell.runs[0].key for _, cell in todo]
    shipped = pd.concat(pd.read_csv(path, dtype=str) for path in Path("reproduced/paper").glob("*.csv"))
    planned = {cell.runs[0].key for part in paper_scale.ORDER for cell in part.cells("paper")}
    assert len(set(keys)) == len(keys) and {*keys} == planned - {*shipped["key"]}
    assert {*shipped["key"]} & planned

    monkeypatch.chdir(tmp_path)  # nothing is shipped here
    (tmp_path / "config").symlink_to(ROOT / "config")
    todo = list(paper_scale.missing(paper_scale.ORDER, "paper"))
    # alpha 0 is a part of its own, and of Table 2
    assert len({cell.runs[0].key for _, cell in todo}) == len(todo)
    first = [cell for part, cell in todo if part == paper_scale.ORDER[0]]
    assert {cell.setting["alpha"] for cell in first} == {0}
    assert [cell.name for _, cell in todo[: len(first)]] == [cell.name for cell in first]
    rows = [[cell.method for cell in row] for _, row in groupby(first, key=lambda cell: dict(cell.setting))]
    assert len(rows) == 4 and all(len(set(row)) == len(row) == 4 for row in rows)
    seeds = [part.seed for part, _ in todo if part.paper == "localscgdam"]
    assert todo[len(first)][0].paper == "localscgdam" and seeds == sorted(seeds)


@pytest.mark.parametrize(
    ("given", "cores", "jobs"), [("cuda", 16, 8), ("cuda", 2, 2), ("cpu", 16, 16), ("cpu", None, 1)]
)
def test_a_gpu_is_shared_and_a_core_is_not(
    paper_scale: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: str,
    cores: int | None,
    jobs: int,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(paper_scale, "missing", lambda parts, scale: [])
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", "--hours", "0", "--device", given])
    paper_scale.main()
    assert f"0 runs to train, {jobs} at a time" in capsys.readouterr().out
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"  # the user's choice


def test_what_runs_longer_than_the_time_is_stopped(paper_scale: ModuleType) -> None:
    begun = time.monotonic()
    paper_scale.call(["-c", "import time; time.sleep(600)"], begun + 0.2)
    assert time.monotonic() - begun < 60


def test_checks_come_first_and_nothing_is_begun_when_the_time_is_up(
    paper_scale: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each process takes 10 seconds of the 95 here: two checks, then eight cells, the last with what is left."""
    clock, calls = [0.0], list[tuple[list[str], float]]()

    class Process:
        def __init__(self, arguments: list[str]) -> None:
            self.arguments = arguments[1:]

        def wait(self, left: float) -> None:
            calls.append((self.arguments, left))
            clock[0] += 10

    monkeypatch.chdir(tmp_path)  # nothing is shipped here
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # restored at the end
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(paper_scale, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    exported: list[list[str]] = []
    fake = SimpleNamespace(Popen=Process, run=lambda command, **_: exported.append(command))
    monkeypatch.setattr(paper_scale, "subprocess", fake)
    monkeypatch.setattr(paper_scale, "export", lambda parts, scale: None)
    given = [
        "--hours",
        str(95 / 3600),
        "--device",
        "cuda",
        "--checks",
        "--jobs",
        "1",
        "--archive",
        "runs.tar.gz",
    ]
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *given])
    paper_scale.main()
    assert [left for _, left in calls] == pytest.approx([95 - 10 * at for at in range(10)])
    assert [arguments for arguments, _ in calls[:2]] == list(paper_scale.CHECKS)
    assert all(Path(check[0]).exists() or check[0] == "-m" for check in paper_scale.CHECKS)
    cells = [arguments[3] for arguments, _ in calls[2:]]
    assert cells == [cell.name for cell in paper_scale.ORDER[0].cells("paper")[:8]]
    compiles = f"compile={str(paper_scale.compiles('cuda')).lower()}"
    assert all("device=cuda" in arguments and compiles in arguments for arguments, _ in calls[2:])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"  # named, it is shared
    assert exported == [[sys.executable, "-m", "fedbench", "store", "export", "runs.tar.gz"]]


def test_what_was_trained_is_added_to_reproduced_and_trained_once(
    paper_scale: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(paper_scale, "ORDER", (paper_scale.Part("toy", "table1", "Digits", 1, {"p": 2}),))
    monkeypatch.setattr(shutil, "which", lambda name: None)  # compiling takes minutes
    monkeypatch.setattr(sys, "executable", str(stand_ins() / "python"))
    given = ["--hours", "1", "--scale", "demo", "--jobs", "1", "--archive", "mine.tar.gz"]
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *given])
    paper_scale.main()
    assert "3 runs to train, 1 at a time" in capsys.readouterr().out
    rows = pd.read_csv("reproduced/demo/toy.csv")
    assert {*rows["method"]} == {*toy.PAPER["methods"]} and {*rows["seed"]} == {1} and {*rows["p"]} == {2}
    assert {*pd.read_csv("reproduced/demo/curves/toy.csv")["key"]} == {*rows["key"]}
    with tarfile.open("mine.tar.gz") as archive:
        held = {Path(name).parent.name for name in archive.getnames() if Path(name).name == "run.json"}
    assert held == {*rows["key"]}

    for run in STORE.iterdir():
        run.rename(project / run.name)  # the files alone say that nothing is left to do
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *given[:-2]])
    paper_scale.main()
    assert "0 runs to train" in capsys.readouterr().out
