"""``make paper-scale`` and ``make gpu``: what they train once, and what they leave."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch
import toy

from fedbench.engine import checkpoint
from fedbench.store.exchange import import_runs
from fedbench.store.runs import Store
from forks import stand_ins

ROOT = Path(__file__).parents[3]


@pytest.fixture
def paper_scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, which compiles nothing: that takes minutes."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    program = importlib.import_module("paper_scale")
    monkeypatch.setattr(program, "compiles", lambda device: False)
    yield program
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_what_was_trained_is_added_to_reproduced_and_trained_once(
    paper_scale: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lend(hours: int) -> None:
        monkeypatch.setattr(sys, "argv", f"paper_scale.py --hours {hours} --scale demo --jobs 1".split())
        paper_scale.main()

    monkeypatch.setattr(paper_scale, "ORDER", (paper_scale.Part("toy", "table1", "Digits", (1,), {"p": 2}),))
    monkeypatch.setattr(sys, "executable", str(stand_ins() / "python"))
    lend(1)
    rows = pd.read_csv("reproduced/demo/toy.csv")
    assert {*rows["method"]} == {*toy.PAPER["methods"]} and {*rows["seed"]} == {1} and {*rows["p"]} == {2}
    assert {*pd.read_csv("reproduced/demo/curves/toy.csv")["key"]} == {*rows["key"]}

    written = Path("reproduced/demo/toy.csv").read_bytes()
    shutil.rmtree("reproduced")
    shutil.rmtree("results/cells")  # as where runs were imported
    lend(0)
    assert Path("reproduced/demo/toy.csv").read_bytes() == written
    capsys.readouterr()
    shutil.rmtree("results")
    lend(0)
    assert "0 runs to train" in capsys.readouterr().out, "the files alone say that nothing is left to do"


def test_rehearsal_of_a_loan(
    paper_scale: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two runs end, each is saved before the next begins, and the third is in the middle when the machine is taken."""
    endless = {"p": {2: {"train": {"iterations": 10**7, "evaluations": 1}}}}
    toy.rewrite(methods=lambda methods: methods["Plain_too"].update(at=endless))
    parts = (paper_scale.Part("toy", "table1", "Digits", (1,), {"p": 2}),)
    short, short_too, long = [job.run.key for job in paper_scale.missing(parts, "demo")]
    out = tmp_path_factory.mktemp("out")
    monkeypatch.setattr(paper_scale, "ORDER", parts)

    saved = list[list[str]]()
    call = paper_scale.Lanes.call

    def spied(lanes: object, arguments: list[str]) -> None:
        archive = out / "runs.tar.gz"
        saved.append(runs_in(archive) if archive.exists() else [])
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


def runs_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return sorted(Path(path).parent.name for path in tar.getnames() if path.endswith("/run.json"))
