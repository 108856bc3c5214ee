"""A workflow killed again and again, at random moments, ends with the table of an undisturbed one.

``make chaos`` runs it with twenty kills; in the whole suite, ``test_crash_points.py`` takes its place.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from projects import BIN, Project

from fedbench import journal

KILLS = int(os.environ.get("FEDBENCH_KILLS", "0"))
TARGETS = ("tables/table1.tex", "tables/table1.md")
BUILT = (*TARGETS, "tables/table1.csv")


class Life:
    """A workflow in a session of its own, and how it is ended before its time."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.begun = len(journal.read(project.root / "results/runs"))
        with (project.root / "said.txt").open("a") as said:
            self.process = subprocess.Popen(
                [BIN / "snakemake", *TARGETS, "--cores", "2"],
                cwd=project.root, env=project.environment(), stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    def trains(self) -> bool:
        """Whether a training has begun since this workflow started."""
        return len(journal.read(self.project.root / "results/runs")) > self.begun

    def jobs(self) -> list[int]:
        """The processes that train, by their numbers."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                group = int(stat.read_text().rpartition(")")[2].split()[2])
                line = (stat.parent / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if group == self.process.pid and b"run" in line and any(b.endswith(b"/fedbench") for b in line):
                found.append(int(stat.parent.name))
        return sorted(found)

    def end(self, dice: random.Random) -> str:
        """Kill the workflow alone, a job of it, or everything, at some moment; say which."""
        if dice.random() < 0.3:
            self.wait(dice.uniform(0.1, 3))  # start-up, preparing, partitions
        else:
            while self.process.poll() is None and not self.trains():
                time.sleep(0.01)
            self.wait(dice.uniform(0, 0.6))
        what = dice.choice(["everything", "everything", "workflow", "job"])
        jobs = self.jobs()
        if what == "job" and jobs:
            os.kill(dice.choice(jobs), signal.SIGKILL)
            self.wait(dice.uniform(0, 1))
            what += " and everything"
        if what == "workflow" and self.process.poll() is None:
            self.process.kill()  # its jobs live on
        else:
            self.kill()
        self.process.wait()
        return what

    def wait(self, seconds: float) -> None:
        """Let it live on for so long, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def kill(self) -> None:
        """Kill every process of the session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture
def lives() -> Iterator[list[Life]]:
    """The workflows of a test; none survives it."""
    all_of_them: list[Life] = []
    yield all_of_them
    for life in all_of_them:
        life.kill()
        life.process.wait()


def chaotic(root: Path, checkpoint_seconds: float) -> Project:
    """A project whose trainings last a few seconds each."""
    root.mkdir()
    project = Project.fresh(root)
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
    tmp_path: Path, lives: list[Life]
) -> None:
    calm = chaotic(tmp_path / "calm", 1e9)
    calm.snakemake(*TARGETS, "--cores", "2")
    project, dice = chaotic(tmp_path / "chaos", 0), random.Random(0)
    store = project.root / "results/runs"
    made: dict[str, tuple[str, int]] = {}
    for _ in range(KILLS):
        lives.append(Life(project))
        print(lives[-1].end(dice), len(project.runs()), "runs", len(journal.read(store)), "lines")
        if (
            lives[-1].process.returncode == 0
        ):  # done too early: what is derived from the store is to be made again
            for folder in ("results/cells", "tables/localscgdam"):
                shutil.rmtree(project.root / folder)
            for name in TARGETS:
                (project.root / name).unlink()
        now = project.runs()
        assert {key: now[key] for key in made} == made, "a finished run was touched"
        made = now
    project.snakemake(*TARGETS, "--cores", "2")

    for name in BUILT:
        assert (project.root / name).read_bytes() == (calm.root / name).read_bytes(), name
    assert project.curves() == calm.curves() and len(project.curves()) == 8
    events = [(line["key"], line["event"]) for line in journal.read(store)]
    for key in project.curves():
        mine = [event for which, event in events if which == key]
        assert mine.count("finished") <= 1, f"{key} was trained {mine.count('finished')} times"
        assert "finished" not in mine[:-1], f"{key} was trained again after it was finished"
    assert len([event for _, event in events if event == "continued"]) >= 1, (
        "no run went on from a checkpoint"
    )
    assert sorted(path.name for path in store.iterdir()) == sorted([*project.curves(), "journal.jsonl"])
    left = [path for path in project.root.rglob(".*.tmp") if ".snakemake" not in path.parts]
    assert left == [], "temporary files of killed processes were left"
