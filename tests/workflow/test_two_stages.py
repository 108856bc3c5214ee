"""A cell that starts from the model of another: pre-training, its last layer dropped, a second method."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train.training import train_run
from projects import TABLE, Project

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
