"""The job arrays of Snakemake's SLURM executor, as far as they can be seen without a cluster."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from fedbench.errors import UserError
from fedbench.jobs import cluster

PROGRAM = "from fedbench.jobs import cluster; cluster.run_own_task(); print('the first job')"


def job(name: str, **resources: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, resources=resources)


def test_jobs_go_at_once_and_with_those_that_ask_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin: Any = pytest.importorskip("snakemake_executor_plugin_slurm")
    submitted: list[list[str]] = []
    monkeypatch.setattr(plugin, "pending_jobs_for_rule", plugin.pending_jobs_for_rule)
    monkeypatch.setattr(
        plugin.Executor, "run_jobs", lambda self, jobs: submitted.append([j.name for j in jobs])
    )
    cluster.mend_arrays()
    first = [job(name, mem_mb=8000, gpu=1) for name in "ab"]
    plugin.Executor.run_jobs(None, [first[0], job("retried", mem_mb=16000, gpu=1), first[1]])
    assert submitted == [["a", "b"], ["retried"]]
    assert plugin.pending_jobs_for_rule(None, "train") == 0


def test_without_the_executor_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "snakemake_executor_plugin_slurm", raising=False)
    cluster.mend_arrays()
    another = SimpleNamespace()  # an executor in which what is mended does not exist
    monkeypatch.setitem(sys.modules, "snakemake_executor_plugin_slurm", another)  # type: ignore[arg-type]
    cluster.mend_arrays()
    assert vars(another) == {}


@pytest.mark.parametrize(
    ("installed", "known"), [("2.8.0", True), ("2.8", True), ("2.80.0", False), ("3.0.1", False)]
)
def test_another_version_of_the_executor_is_refused_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch, installed: str, known: bool
) -> None:
    monkeypatch.setattr(cluster, "version", lambda package: installed)
    cluster.check("local")
    if known:
        cluster.check("slurm")
    else:
        with pytest.raises(UserError, match=rf"slurm {installed} is installed, .*pip install .*==2\.8"):
            cluster.check("slurm")


@pytest.mark.parametrize(
    ("variables", "runs"),
    [
        ({"ID": "3", "MIN": "2"}, "own job 3"),
        ({"ID": "2", "MIN": "2"}, "the first job"),
        ({}, "the first job"),
    ],
)
def test_a_task_runs_its_own_job(variables: dict[str, str], runs: str) -> None:
    commands = {"3": zlib.compress(b'echo "own job $SLURM_ARRAY_TASK_ID"').hex()}
    given = base64.b64encode(json.dumps(commands).encode()).decode()
    environment = os.environ | {f"SLURM_ARRAY_TASK_{name}": value for name, value in variables.items()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--jobs", "1", f"{cluster.COMMANDS}={given}"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == runs
