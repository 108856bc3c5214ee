"""Workflows that meet other workflows, die in either of two stages, lose a job, or wake up in another year."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from victims import WorkflowProcess

from fedbench.store import journal
from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train.training import train_run
from projects import TABLE, Project, fedbench, jobs

TARGET = "tables/table1.tex"
METHOD = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"
CELL = f"results/cells/tiny/{METHOD}.json"
YEARS = 10 * 365 * 86400.0


def trained(project: Project) -> Counter[str]:
    """Count how often each run was finished by a training."""
    lines = journal.read_journal(project.root / "results/runs")
    return Counter(line["key"] for line in lines if line["event"] == "finished")


def lengthen(project: Project, iterations: int) -> None:
    with project.edit("config/scales/tiny.yaml") as scale:
        scale["papers"]["localscgdam"]["train"]["iterations"] = iterations


def until_checkpoints(project: Project, number: int, workflow: subprocess.Popen[bytes]) -> None:
    while len(list(project.root.glob("results/runs/*.unfinished/checkpoint.pt"))) < number:
        assert workflow.poll() is None, (project.root / "said.txt").read_text()
        time.sleep(0.02)


def test_a_second_workflow_is_told_of_the_first_and_a_killed_one_goes_on_to_the_same_bytes(
    project: Project, workflows: list[WorkflowProcess]
) -> None:
    """Seeds that are trained at a time, each from its checkpoint, to the bytes of one after another."""
    lengthen(project, 24)
    with project.edit("config/config.yaml") as config:
        config |= {"seeds": [0, 1], "checkpoint_seconds": 0}
    workflows.append(WorkflowProcess.held(project, CELL, "--cores", "2"))
    first = workflows[0].process
    until_checkpoints(project, 2, first)
    said = project.snakemake(CELL, fails=True)
    told = re.search(r"another workflow is at work in this folder \(process (\d+)\)", said)
    assert told and os.getpgid(int(told[1])) == workflows[0].group
    assert "Directory cannot be locked" in said
    assert first.poll() is None, "the first one is not disturbed"
    workflows[0].kill()
    first.wait()

    project.snakemake(CELL, "--cores", "2")
    assert not list(project.root.glob("results/runs/*.unfinished"))
    events = journal.read_journal(project.root / "results/runs")
    went_on = {line["pid"] for line in events if line["event"] == "continued"}
    assert len(went_on) == 2, "each seed in a process of its own, from its checkpoint"
    at_once = project.curves()
    shutil.rmtree(project.root / "results")
    fedbench(project, "run", METHOD, "--scale", "tiny")
    assert len(at_once) == 2 and project.curves() == at_once


def test_two_workflows_with_one_store_train_every_run_once(built: Project, tmp_path: Path) -> None:
    """Folders of their own, as on two machines that share a disk: Snakemake knows nothing of the other one."""
    store, projects = tmp_path / "store", list[Project]()
    store.mkdir()
    for name in ("one", "two"):
        shutil.copytree(built.root, tmp_path / name, symlinks=True)
        shutil.rmtree(tmp_path / name / "results/runs")
        (tmp_path / name / "results/runs").symlink_to(store)
        projects.append(Project(tmp_path / name))
        lengthen(projects[-1], 120)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda project: project.snakemake(TARGET, "--cores", "2"), projects))
    assert trained(projects[0]) == dict.fromkeys(projects[0].runs(), 1) and len(projects[0].runs()) == 4
    first, second = ((project.root / TARGET).read_bytes() for project in projects)
    assert first == second


def test_a_killed_job_stops_no_other_and_the_end_says_what_happened(
    built: Project, workflows: list[WorkflowProcess]
) -> None:
    before = trained(built)
    with built.edit("config/papers/localscgdam.yaml") as paper:
        for method in ("LocalSGDAM", "LocalSGDM"):
            paper["methods"][method]["params"]["lr"] = 0.07
    with built.edit("config/config.yaml") as config:
        config["checkpoint_seconds"] = 0
    workflows.append(WorkflowProcess.held(built, TARGET, "--cores", "1"))
    until_checkpoints(built, 1, workflows[0].process)
    (job,) = workflows[0].jobs()
    os.kill(job, signal.SIGKILL)
    (built.root / "held").unlink()
    assert workflows[0].process.wait() != 0
    said = (built.root / "said.txt").read_text()
    assert said.count("not finished: ") == 1
    assert "    error: killed by signal 9" in said
    assert "  run it alone: fedbench run localscgdam/Digits/p4_imratio0.1/LocalSGD" in said
    assert "cells: 1 of 2 done, 1 failed\n" in said
    killed, finished = sorted(built.table().values(), key=lambda row: row["status"])
    assert (killed["status"], finished["status"]) == ("failed", "finished")
    assert "killed by signal 9" in killed["reason"]
    again = built.snakemake(TARGET, "--cores", "1")
    assert jobs(again)["train"] == 1 and "cells: 2 of 2 done\n" in again
    assert set(trained(built).values()) == {1} and len(trained(built) - before) == 4


def shift(folder: Path, seconds: float) -> None:
    for path in (path for path in folder.rglob("*") if path.is_file()):
        when = path.stat().st_mtime + seconds
        os.utime(path, (when, when))


def test_data_of_the_future_and_runs_copied_in_by_hand_are_used_as_they_are(
    built: Project, tmp_path: Path
) -> None:
    table, runs = (built.root / TARGET).read_bytes(), built.root / "results/runs"
    shift(built.root / "data", YEARS)
    (built.root / "results").rename(tmp_path / "elsewhere")
    shutil.rmtree(built.root / "tables/localscgdam")
    (built.root / TARGET).unlink()
    keys = [path.parent.name for path in tmp_path.glob("elsewhere/runs/*/run.json")]
    for key in keys:
        shutil.copytree(tmp_path / "elsewhere/runs" / key, runs / key)
    (runs / f"{keys[0]} (copy)").mkdir()  # a copy that someone broke off
    before = built.runs()
    assert jobs(built.snakemake(TARGET)) == {"train": 2, "table": 1, "own_table": 1}
    assert len(keys) == 4 and trained(built) == {} and built.runs() == before
    assert (built.root / TARGET).read_bytes() == table
    assert "Nothing to be done" in built.snakemake(TARGET)


DIES = """
import os, sys

def hook(event, args, seen=[0]):
    if event == "os.rename" and str(args[1]).endswith(os.environ["DIES_IN"] + ".unfinished/checkpoint.pt"):
        seen[0] += 1
        if seen[0] == 2:
            os.kill(os.getpid(), 9)

if os.environ.get("DIES_IN"):
    sys.addaudithook(hook)
"""
"""A sitecustomize that kills a process before it writes the second checkpoint of a run."""


@pytest.fixture
def two_stages(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in which LocalSGDAM starts from the model of LocalSGDM, without its last layer."""
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["train"] = {"keep_model": True}
        paper["methods"]["LocalSGDAM"]["start"] = {"cell": {"method": "LocalSGDM"}, "drop_head": True}
    with project.edit("config/config.yaml") as config:
        config |= {"seeds": [0], "checkpoint_seconds": 0}
    (project.root / "dies").mkdir()
    (project.root / "dies/sitecustomize.py").write_text(DIES)
    monkeypatch.setenv("PYTHONPATH", str(project.root / "dies"), prepend=os.pathsep)
    monkeypatch.chdir(project.root)
    return project


def test_killed_in_either_stage_it_ends_with_the_same_bytes(
    two_stages: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config, store, full = configuration.load_config(), Store(), Store(tmp_path / "full")
    (run,) = next(cell.runs for cell in Plan(config).cells("table1") if cell.method == "LocalSGDAM")
    assert run.start is not None and run.start.run is not None
    first = run.start.run
    for stage in (first, run):
        monkeypatch.setenv("DIES_IN", stage.key)
        said = two_stages.snakemake(f"{TABLE}.tex", "--cores", "1", fails=True)
        assert "killed by signal 9" in said
        assert store.unfinished() == [stage.key] and store.checkpoint(stage.key).exists()
        assert (store.load(first.key) is not None) == (stage is run), "the first stage comes first, and once"
    monkeypatch.delenv("DIES_IN")
    two_stages.snakemake(f"{TABLE}.tex", "--cores", "1")
    assert {row["status"] for row in two_stages.table().values()} == {"finished"}

    train_run(run, config, full)
    for key in (first.key, run.key):
        assert (store.path(key) / "curve.csv").read_bytes() == (full.path(key) / "curve.csv").read_bytes()
    models = [torch.load(kept.path(first.key) / MODEL, weights_only=True) for kept in (store, full)]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0]) and len(models[0]) >= 4
