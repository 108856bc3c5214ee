"""``make paper-scale`` and ``make gpu``: which runs they train, in which order, for how long, and what they leave."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
import torch
import toy
import yaml

from fedbench.engine import checkpoint
from fedbench.store.exchange import import_runs
from fedbench.store.runs import STORE, Store
from forks import stand_ins

ROOT = Path(__file__).parents[3]


@pytest.fixture
def paper_scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield importlib.import_module("paper_scale")
    for number, handler in handlers.items():
        signal.signal(number, handler)


def given(**options: object) -> argparse.Namespace:
    """What the command line says."""
    return argparse.Namespace(**{"hours": 1, "device": "cpu", "scale": "demo", "archive": None} | options)


def test_whole_settings_come_early_and_what_is_shipped_is_left_out(
    paper_scale: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    keys = [job.run.key for job in paper_scale.missing(paper_scale.ORDER, "paper")]
    shipped = pd.concat(pd.read_csv(path, dtype=str) for path in Path("reproduced/paper").glob("*.csv"))
    planned = {run.key for part in paper_scale.ORDER for _, run in part.runs("paper")}
    assert len(set(keys)) == len(keys) and {*keys} == planned - {*shipped["key"]}
    assert {*shipped["key"]} & planned

    monkeypatch.chdir(tmp_path)  # nothing is shipped here
    (tmp_path / "config").symlink_to(ROOT / "config")
    todo = list(paper_scale.missing(paper_scale.ORDER, "paper"))
    assert len({job.run.key for job in todo}) == len(todo)
    first = [job for job in todo if job.part == paper_scale.ORDER[0]]
    assert todo[: len(first)] == first and {job.cell.setting["n_clients"] for job in first} == {500}
    settings = [[*row] for _, row in groupby(first, key=lambda job: dict(job.cell.setting))]
    assert len(settings) == 8  # rho, minority classes, alpha: none comes twice
    for row in settings:
        assert {(job.cell.method, job.run.seed) for job in row} == {
            (method, seed) for method in {job.cell.method for job in first} for seed in (0, 1, 2)
        }
    none = paper_scale.Part("climb", "table2", "MNIST", (1,), {"alpha": 0})
    assert {(cell.setting["alpha"], run.seed) for cell, run in none.runs("paper")} == {(0, 1)}


@pytest.mark.parametrize(
    ("device", "cores", "jobs"), [("cuda", 16, 11), ("cuda", 2, 2), ("cpu", 16, 16), ("cpu", None, 1)]
)
def test_a_gpu_is_shared_and_a_core_is_not(
    paper_scale: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    device: str,
    cores: int | None,
    jobs: int,
) -> None:
    control, said = tmp_path / paper_scale.MPS, tmp_path / "said"
    control.write_text(f"#!/bin/sh\necho $* >> {said}\n[ $# = 1 ] || cat >> {said}\n")
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(paper_scale, "missing", lambda parts, scale: [])
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", "--hours", "0", "--device", device])
    paper_scale.main()
    assert f"0 runs to train, {jobs} at a time" in capsys.readouterr().out
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"  # the user's choice
    assert said.read_text().split() == ["-d", "quit"] if device == "cuda" else not said.exists()


def test_what_runs_longer_than_the_time_is_stopped(
    paper_scale: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time.monotonic()
    paper_scale.Lanes(given(hours=0.2 / 3600)).call(["-c", "import time; time.sleep(600)"])
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    monkeypatch.setitem(paper_scale.SAVED_WITHIN, "cpu", 0.2)
    paper_scale.Lanes(given(hours=2 / 3600)).call(["-c", deaf])
    assert time.monotonic() - begun < 60


class Clock:
    """A clock on which each process takes 10 seconds."""

    def __init__(self, program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.calls = 0.0, list[tuple[list[str], float]]()
        monkeypatch.setattr(program, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(program, "subprocess", SimpleNamespace(Popen=self.process))

    def process(self, arguments: list[str]) -> SimpleNamespace:
        """Begin and end."""
        self.calls.append((arguments[1:], self.now))
        self.now += 10
        return SimpleNamespace(poll=lambda: 0, terminate=lambda: None, wait=lambda seconds: 0)


def test_checks_come_first_and_nothing_is_begun_when_the_time_is_up(
    paper_scale: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of 95 seconds: two checks, then eight cells, the last with what is left."""
    monkeypatch.chdir(tmp_path)  # nothing is shipped here
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # restored at the end
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    clock = Clock(paper_scale, monkeypatch)
    monkeypatch.setattr(paper_scale, "export", lambda parts, scale: None)
    words = f"--hours {95 / 3600} --device cuda --checks --jobs 1"
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *words.split()])
    paper_scale.main()
    assert [at for _, at in clock.calls] == pytest.approx([10 * at for at in range(10)])
    assert [arguments for arguments, _ in clock.calls[:2]] == list(paper_scale.CHECKS)
    assert all(Path(check[0]).exists() or check[0] == "-m" for check in paper_scale.CHECKS)
    cells = [arguments[3] for arguments, _ in clock.calls[2:]]
    assert cells == [job.cell.name for job in paper_scale.missing(paper_scale.ORDER, "paper")][:8]
    compiles = f"compile={str(paper_scale.compiles('cuda')).lower()}"
    assert all("device=cuda" in words and compiles in words for words, _ in clock.calls[2:])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"  # named, it is shared


def test_a_lent_machine_begins_no_run_that_cannot_end(
    paper_scale: ModuleType, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 25 seconds two runs take 10 each; a third would be cut off, but on one's own machine it goes on later."""
    parts = (paper_scale.Part("toy", "table1", "Digits", (0,), {"p": 2}),)
    monkeypatch.setattr(Store, "has", lambda store, key: True)
    for archive, begun in ((Path("mine.tar.gz"), 2), (None, 3)):
        clock = Clock(paper_scale, monkeypatch)
        lanes = paper_scale.Lanes(given(hours=25 / 3600, archive=archive))
        for job in paper_scale.missing(parts, "demo"):
            lanes.train(job)
        assert len(clock.calls) == begun


def test_what_was_trained_is_added_to_reproduced_and_trained_once(
    paper_scale: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(paper_scale, "ORDER", (paper_scale.Part("toy", "table1", "Digits", (1,), {"p": 2}),))
    monkeypatch.setattr(shutil, "which", lambda name: None)  # compiling takes minutes
    paper_scale.compiles.cache_clear()
    monkeypatch.setattr(sys, "executable", str(stand_ins() / "python"))
    words = ["--hours", "1", "--scale", "demo", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *words])
    paper_scale.main()
    assert "3 runs to train, 1 at a time" in capsys.readouterr().out
    rows = pd.read_csv("reproduced/demo/toy.csv")
    assert {*rows["method"]} == {*toy.PAPER["methods"]} and {*rows["seed"]} == {1} and {*rows["p"]} == {2}
    assert {*pd.read_csv("reproduced/demo/curves/toy.csv")["key"]} == {*rows["key"]}

    written = Path("reproduced/demo/toy.csv").read_bytes()
    shutil.rmtree("reproduced")
    shutil.rmtree("results/cells")  # as where runs were imported
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", "--hours", "0", *words[2:]])
    paper_scale.main()
    assert Path("reproduced/demo/toy.csv").read_bytes() == written
    capsys.readouterr()

    for run in STORE.iterdir():
        run.rename(project / run.name)  # the files alone say that nothing is left to do
    paper_scale.main()
    assert "0 runs to train" in capsys.readouterr().out


def test_rehearsal_of_a_loan(
    paper_scale: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two runs end, each is saved before the next begins, and the third is in the middle when the machine is taken."""
    path = project / "config/papers/toy.yaml"
    endless = {"p": {2: {"train": {"iterations": 10**7, "evaluations": 1}}}}
    study = yaml.safe_load(path.read_text())
    study["methods"]["Plain_too"]["at"] = endless
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    parts = (paper_scale.Part("toy", "table1", "Digits", (1,), {"p": 2}),)
    short, short_too, long = [job.run.key for job in paper_scale.missing(parts, "demo")]
    out = tmp_path_factory.mktemp("out")
    monkeypatch.setattr(paper_scale, "ORDER", parts)
    monkeypatch.setattr(shutil, "which", lambda name: None)  # compiling takes minutes
    paper_scale.compiles.cache_clear()  # and a fork for an interpreter would not hear the signal that ends a run

    saved = list[list[str]]()
    call = paper_scale.Lanes.call

    def spied(lanes: object, arguments: list[str]) -> None:
        archive = out / "runs.tar.gz"
        saved.append(sorted(members(archive, "run.json")) if archive.exists() else [])
        call(lanes, arguments)

    def taken_away() -> None:
        while not Store().checkpoint(long).exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(paper_scale.Lanes, "call", spied)
    words = f"--hours 1 --scale demo --jobs 1 --archive {out}/runs.tar.gz"
    monkeypatch.setattr(sys, "argv", ["paper_scale.py", *words.split()])
    with (project / "config/config.yaml").open("a") as config:
        config.write("checkpoint_seconds: 0\n")
    watcher = threading.Thread(target=taken_away, daemon=True)
    watcher.start()
    paper_scale.main()
    assert saved == [[], [short], sorted([short, short_too])]
    assert not Path("reproduced").exists()  # time that is lent is for training

    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(home)
    assert sorted(import_runs(Store(), out / "runs.tar.gz").new) == sorted([short, short_too])
    with tarfile.open(out / "unfinished.tar") as tar:
        tar.extractall(filter="data")
    with Store().checkpoint(long).open("rb") as file:
        content = checkpoint.unpack(file, torch.device("cpu"))
    assert content["key"] == long and content["state"]["round"] > 0


def members(archive: Path, name: str) -> list[str]:
    """Name the folders of an archive that hold a file."""
    with tarfile.open(archive) as tar:
        return [Path(path).parent.name for path in tar.getnames() if Path(path).name == name]
