"""The cluster's profiles on a real SLURM: what is asked for, what a killed job loses, and that the numbers stay."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

from onenode import OneNode

from fedbench.store import journal
from projects import BIN, Project, jobs

RESULTS = tuple(f"tables/**/table1.{form}" for form in ("tex", "csv", "md"))
RESULTS += ("results/cells/**/*.json", "results/runs/*/curve.csv")


class Call:
    """A running Snakemake that uses the cluster."""

    def __init__(self, project: Project, slurm: OneNode, *arguments: str) -> None:
        self.said = project.root / "said.txt"
        # as on a real cluster, where both are set for everybody
        environment = project.environment() | {"SLURM_CONF": slurm.environment["SLURM_CONF"]}
        environment["PATH"] = os.pathsep.join([str(slurm.folder / "bin"), environment["PATH"]])
        with self.said.open("w") as output:
            self.process = subprocess.Popen(
                [BIN / "snakemake", *arguments], cwd=project.root, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def running(self) -> bool:
        return self.process.poll() is None

    def finish(self) -> str:
        """Wait for a good end and return all it said."""
        try:
            assert self.process.wait(timeout=240) == 0, self.said.read_text()
        finally:
            self.process.kill()
        return self.said.read_text()


def results(project: Project) -> dict[str, bytes]:
    """What was computed, by the file it is in."""
    names = {path for pattern in RESULTS for path in project.root.glob(pattern)}
    return {str(path.relative_to(project.root)): path.read_bytes() for path in names}


def trained_on(project: Project) -> dict[str, str]:
    """The card that each method's job saw, by the method."""
    logs = (project.root / "logs/train").rglob("*.log")
    names = {path.stem: re.search(r"CUDA_VISIBLE_DEVICES=(\S*)", path.read_text()) for path in logs}
    return {method: match[1] if match else "" for method, match in names.items()}


def begun(project: Project) -> tuple[Path, int, str] | None:
    """A run that is in training: its folder, its process, and the number of its SLURM job."""
    for trail in project.root.glob("results/runs/*.unfinished/progress.json"):
        pid = int((trail.parent / "lock").read_text().split()[0])
        variables = Path(f"/proc/{pid}/environ").read_text().split("\0")
        slurm = dict(item.split("=", 1) for item in variables if item.startswith("SLURM_"))
        return trail.parent, pid, slurm["SLURM_JOB_ID"]
    return None


def test_a_table_on_slurm_with_a_cancelled_job(project: Project, built_here: Project, slurm: OneNode) -> None:
    before = set(slurm.jobs())
    call = Call(
        project, slurm, "tables/table1.tex", "--workflow-profile", "slurm", "--resources", "gpu=2",
        "--slurm-init-seconds-before-status-checks", "1",
    )  # fmt: skip
    slurm.wait(lambda: begun(project) is not None or not call.running(), "a run to begin", 120)
    result = begun(project)
    assert result is not None, call.said.read_text()
    folder, pid, cancelled = result
    os.kill(pid, signal.SIGSTOP)  # or it would be done before it is cancelled; SLURM lets it go on
    slurm.run("scancel", cancelled)
    said = call.finish()

    trained = {number: facts for number, facts in slurm.jobs().items() if number not in before}
    assert len(trained) == 4, "three cells, one of them twice"
    assert {facts["TresPerJob"] for facts in trained.values()} == {"gres:gpu:1"}
    assert Counter(facts["JobState"] for facts in trained.values()) == {"COMPLETED": 3, "CANCELLED": 1}
    asked = sorted((facts["TimeLimit"], facts["MinMemoryNode"][:-4]) for facts in trained.values())
    assert asked == [("04:00:00", "8")] * 3 + [("08:00:00", "16")], "the retry gets more"

    assert set(trained_on(project).values()) <= {"0", "1"} and len(trained_on(project)) == 3
    events = [
        line["event"]
        for line in journal.read_journal(project.root / "results/runs")
        if line["key"] == folder.stem
    ]
    assert events == ["begun", "continued", "finished"], "it went on from what it saved when it was cancelled"
    assert jobs(said) == {"prepare": 1, "partition": 2, "train": 3, "table": 1, "own_table": 1}
    assert results(project) == results(built_here)


def test_the_generic_profile_trains_the_same_cells_two_in_a_job(
    built_here: Project, slurm: OneNode, tmp_path: Path
) -> None:
    shutil.copytree(built_here.root, tmp_path / "copy", symlinks=True)
    project = Project(tmp_path / "copy")
    cells = [
        *project.root.glob("results/cells/**/CoDA.json"),
        *project.root.glob("results/cells/**/LocalSGDM.json"),
    ]
    for cell in cells:
        cell.unlink()
    shutil.rmtree(project.root / "results/runs")
    before = set(slurm.jobs())
    said = Call(
        project, slurm, *(str(cell.relative_to(project.root)) for cell in cells), "--workflow-profile",
        "cluster-generic", "--seconds-between-status-checks", "1", "--groups", "train=cells", "--group-components",
        "cells=2",
    ).finish()  # fmt: skip
    assert jobs(said) == {"train": 2}
    (facts,) = (facts for number, facts in slurm.jobs().items() if number not in before)
    asked = [facts[name] for name in ("JobState", "TresPerJob", "MinMemoryNode", "TimeLimit")]
    assert asked == ["COMPLETED", "gres:gpu:1", "8000M", "08:00:00"], "one card, the minutes of both"
    assert trained_on(project)["CoDA"] in ("0", "1")
    for cell in cells:
        assert cell.read_bytes() == (built_here.root / cell.relative_to(project.root)).read_bytes()
