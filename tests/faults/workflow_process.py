"""Workflows that are ended before their time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from fedbench.store import journal
from projects import BIN, Project


class WorkflowProcess:
    """A workflow in a session of its own; what it says goes to ``said.txt``."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.project = project
        self.begun = len(journal.read(project.root / "results/runs"))
        with (project.root / "said.txt").open("a") as said:
            self.process = subprocess.Popen(
                [BIN / "snakemake", *arguments],
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

    def wait(self, seconds: float) -> None:
        """Let it live on for so long, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def kill(self) -> None:
        """Kill every process of the session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def until_it_trains(self) -> None:
        """Wait until a training has begun, or the workflow has ended."""
        while self.process.poll() is None and not self.trains():
            time.sleep(0.01)
