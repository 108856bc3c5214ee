"""A workflow killed again and again, at random moments, ends with the table of an undisturbed one.

``make chaos`` runs it with twenty kills; in the whole suite, ``test_checkpoints.py`` takes its place.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from workflow_process import WorkflowProcess

from fedbench.store import journal
from projects import BIN, Project

KILLS = int(os.environ.get("FEDBENCH_KILLS", "0"))
TARGETS = ("tables/table1.tex", "tables/table1.md")
BUILT = (*TARGETS, "tables/table1.csv")


def end(workflow: WorkflowProcess, dice: random.Random) -> str:
    """Kill the workflow alone, a job of it, or everything, at some moment; say which."""
    if dice.random() < 0.3:
        workflow.wait(dice.uniform(0.1, 3))  # start-up, preparing, partitions
    else:
        workflow.until_it_trains()
        workflow.wait(dice.uniform(0, 0.6))
    what = dice.choice(["everything", "everything", "workflow", "job"])
    jobs = workflow.jobs()
    if what == "job" and jobs:
        os.kill(dice.choice(jobs), signal.SIGKILL)
        workflow.wait(dice.uniform(0, 1))
        what += " and everything"
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
        # done too early: what is derived from the store is to be made again
        if workflows[-1].process.returncode == 0:
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
    events = [(line["key"], line["event"]) for line in journal.read_journal(store)]
    for key in project.curves():
        mine = [event for which, event in events if which == key]
        assert mine.count("finished") <= 1, f"{key} was trained {mine.count('finished')} times"
        assert "finished" not in mine[:-1], f"{key} was trained again after it was finished"
    assert "continued" in {event for _, event in events}, "no run went on from a checkpoint"
    assert sorted(path.name for path in store.iterdir()) == sorted([*project.curves(), "journal.jsonl"])
    left = [path for path in project.root.rglob(".*.tmp") if ".snakemake" not in path.parts]
    assert left == [], "temporary files of killed processes were left"
