"""Trainings that die, at each change of a file or at random, or find an odd checkpoint: the same bytes in the end."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from crash_worker import short_run
from victims import WorkflowProcess

from fedbench.data.prepared import prepare
from fedbench.engine import checkpoint
from fedbench.errors import AGAIN, WriteError
from fedbench.store import journal
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train.training import train_run
from forks import stand_ins
from projects import BIN, Project

RUN = short_run()


class DiedError(Exception):
    pass


def train(store: Store, data: Path, on_round: Callable[[Any], None] = lambda progress: None) -> bytes:
    train_run(RUN, Config(device="cpu", checkpoint_seconds=0, data_dir=str(data)), store, on_round)
    return (store.path(RUN.key) / "curve.csv").read_bytes()


def die(progress: Any) -> None:
    if progress.round == 2:
        raise DiedError


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with path.open("rb") as file:
        content = checkpoint.unpack(file, torch.device("cpu"))
    change(content)
    with path.open("wb") as file:
        checkpoint.pack(content, file)


def of_server(content: dict[str, Any]) -> dict[str, Any]:
    server: dict[str, Any] = content["state"]["server"]
    return server


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: None, ""),  # the control: only the round that was lost is trained
        (lambda content: content["versions"].update(torch="1.0"), "its versions is"),
        (lambda content: content.pop("versions"), "versions"),
        (lambda content: content.update(format=0), "its format is 0, not 2"),
        (lambda content: content["state"].pop("ledger"), "its state lacks ledger"),
        (lambda content: of_server(content).pop("x"), "its state server lacks x"),
        (lambda content: of_server(content).update(x=of_server(content)["x"][:-1].clone()), "x has another shape"),
        (lambda content: content["state"].update(round="one"), "its state round is no int"),
    ],
)  # fmt: skip
def test_the_run_starts_again_and_says_why(
    change: Callable[[dict[str, Any]], object], reason: str, digits: Path, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    store, undisturbed = Store(tmp_path / "runs"), train(Store(tmp_path / "calm"), digits)
    with pytest.raises(DiedError):
        train(store, digits, die)
    path = store.checkpoint(RUN.key)
    rewrite(path, change)
    rounds: list[int] = []
    with caplog.at_level(logging.WARNING):
        assert train(store, digits, lambda progress: rounds.append(progress.round)) == undisturbed
    said = [text for text in caplog.messages if "unusable" in text]
    if not reason:
        assert rounds == [2] and said == []
    else:
        assert rounds == [1, 2] and len(said) == 1
        assert reason in said[0] and str(path) in said[0] and "kept as checkpoint.pt.unusable" in said[0]


@pytest.mark.parametrize(("cause", "stops"), [(errno.EROFS, True), (errno.EIO, True), (errno.ENOSPC, False)])
def test_a_run_stops_at_a_checkpoint_that_says_its_result_would_not_be_taken_either(
    cause: int, stops: bool, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for a checkpoint it goes on: there may be room for its result by then."""
    store, rounds = Store(tmp_path / "runs"), list[int]()

    def broken(*_: object) -> None:
        raise OSError(cause, os.strerror(cause))

    monkeypatch.setattr(checkpoint, "save", broken)
    try:
        train(store, digits, lambda progress: rounds.append(progress.round))
    except WriteError as error:
        assert stops and str(error).endswith(AGAIN) and "checkpoint.pt" in str(error)
    assert rounds == [1] if stops else rounds == [1, 2]
    assert (store.load(RUN.key) is None) is stops


def test_dying_before_any_change_to_a_file_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    prepare("digits", tmp_path / "data")
    worker = Path(__file__).with_name("crash_worker.py")
    done = subprocess.run(
        [stand_ins() / "python", worker, tmp_path / "data"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["wrong"] == {}, done.stderr
    # folder, lock, journal, checkpoints, curve, record, the rename, cleaning up, the cell
    assert said["changes"] > 20
    assert [Path(name).name for name in said["files"]] == ["FedAvg.json", "curve.csv"]


KILLS = int(os.environ.get("FEDBENCH_KILLS", "0"))
TARGETS = ("tables/table1.tex", "tables/table1.md")
BUILT = (*TARGETS, "tables/table1.csv")


def end(workflow: WorkflowProcess, dice: random.Random) -> str:
    """Kill the workflow alone, a job of it first, or everything, at some moment; say which."""
    if dice.random() < 0.3:
        workflow.wait(dice.uniform(0.1, 3))  # start-up, preparing, partitions
    else:
        workflow.until_it_trains()
        workflow.wait(dice.uniform(0, 0.6))
    what, jobs = dice.choice(["everything", "everything", "workflow", "job"]), workflow.jobs()
    if what == "job" and jobs:
        os.kill(dice.choice(jobs), signal.SIGKILL)
        workflow.wait(dice.uniform(0, 1))
    if what == "workflow" and workflow.process.poll() is None:
        workflow.process.kill()  # its jobs live on
    else:
        workflow.kill()
    workflow.process.wait()
    return what


def chaotic(root: Path, checkpoint_seconds: float) -> Project:
    """A project whose trainings last a few seconds each."""
    root.mkdir()
    project = Project.fresh(root)
    project.programs = BIN  # real ones: a signal to a stand-in reaches no workflow
    with project.edit("config/scales/tiny.yaml") as scale:
        scale["papers"]["localscgdam"]["train"] |= {"epochs": None, "iterations": 150 * KILLS}
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["tables"]["table1"]["methods"] = ["LocalSCGDAM", "CoDA", "LocalSGDAM", "LocalSGDM"]
    with project.edit("config/config.yaml") as config:
        config["checkpoint_seconds"] = checkpoint_seconds
    return project


@pytest.mark.skipif(not KILLS, reason="takes minutes: make chaos")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the jobs to kill in /proc")
def test_the_last_restart_ends_with_the_bytes_of_an_undisturbed_run(
    tmp_path: Path, workflows: list[WorkflowProcess]
) -> None:
    calm = chaotic(tmp_path / "calm", 1e9)
    calm.snakemake(*TARGETS, "--cores", "2")
    project, dice = chaotic(tmp_path / "chaos", 0), random.Random(0)
    store = project.root / "results/runs"
    made: dict[str, tuple[str, int]] = {}
    for _ in range(KILLS):
        workflows.append(WorkflowProcess(project, *TARGETS, "--cores", "2"))
        print(end(workflows[-1], dice), len(project.runs()), "runs")
        if (
            workflows[-1].process.returncode == 0
        ):  # too early: what is derived from the store is to be made again
            shutil.rmtree(project.root / "results/cells"), shutil.rmtree(project.root / "tables")
        now = project.runs()
        assert {key: now[key] for key in made} == made, "a finished run was touched"
        made = now
    project.snakemake(*TARGETS, "--cores", "2")

    for name in BUILT:
        assert (project.root / name).read_bytes() == (calm.root / name).read_bytes(), name
    assert project.curves() == calm.curves() and len(project.curves()) == 8
    events = [(line["key"], line["event"]) for line in journal.read_journal(store)]
    for key in project.curves():
        mine = [event for which, event in events if which == key]
        assert mine.count("finished") <= 1, f"{key} was trained {mine.count('finished')} times"
        assert "finished" not in mine[:-1], f"{key} was trained again after it was finished"
    assert "continued" in {event for _, event in events}, "no run went on from a checkpoint"
    assert sorted(path.name for path in store.iterdir()) == sorted([*project.curves(), "journal.jsonl"])
    left = [path for path in project.root.rglob(".*.tmp") if ".snakemake" not in path.parts]
    assert left == [], "temporary files of killed processes were left"
