"""A small disk to fill, and workflows that are ended before their time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import forks
from fedbench.files import alive
from fedbench.store import journal
from projects import BIN, Project


class Disk:
    """A small disk of its own."""

    def __init__(self, path: Path, size: str) -> None:
        self.path, self._size = path, size
        path.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    def _mount(self, *options: str) -> None:
        done = subprocess.run(["mount", *options, self.path], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")

    def fill(self, leave: int = 0) -> None:
        """Fill it up to ``leave`` bytes."""
        with (self.path / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        if leave:
            os.truncate(self.path / "filler", (self.path / "filler").stat().st_size - leave)

    def free(self) -> None:
        """Remove the filling."""
        (self.path / "filler").unlink()

    def writable(self, yes: bool) -> None:
        """Mount it read-only, or writable again."""
        self._mount("-o", f"remount,size={self._size},{'rw' if yes else 'ro'}")

    def resize(self, size: str) -> None:
        """Make it larger."""
        self._size = size
        self.writable(True)

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "--lazy", self.path], check=False)


HOLD = """
import os, sys, time

def hook(event, args):
    if event == "os.rename" and str(args[1]).endswith(".unfinished/checkpoint.pt") and os.path.exists(args[1]):
        while os.path.exists("held"):
            time.sleep(0.01)

sys.addaudithook(hook)
"""
"""A sitecustomize that holds a training before its second checkpoint, while there is a file ``held``."""


class WorkflowProcess:
    """A workflow in a process group of its own; what it says goes to ``said.txt``."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.project, programs, group = project, project.programs, 0
        if programs != BIN:
            programs, group = forks.group()
        self.begun = len(journal.read_journal(project.root / "results/runs"))
        with (project.root / "said.txt").open("a") as said:
            self.process = subprocess.Popen(
                [programs / "snakemake", *arguments],
                cwd=project.root, env=project.environment(), stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip
        self.group = group or self.process.pid

    @classmethod
    def held(cls, project: Project, *arguments: str) -> WorkflowProcess:
        """Start one whose trainings wait, with a checkpoint each, while there is a file ``held``."""
        forks.stand_ins()  # whose server must not wait
        (project.root / "held").touch()
        (project.root / "sitecustomize.py").write_text(HOLD)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTHONPATH", str(project.root), prepend=os.pathsep)
            return cls(project, *arguments)

    def trains(self) -> bool:
        """Whether a training has begun since this workflow started."""
        return len(journal.read_journal(self.project.root / "results/runs")) > self.begun

    def jobs(self) -> list[int]:
        """The processes that train, by their numbers."""
        training = dict[str, str]()
        for line in journal.read_journal(self.project.root / "results/runs")[self.begun :]:
            training |= {line["key"]: line["pid"] if line["event"] in ("begun", "continued") else ""}
        return [int(pid) for pid in training.values() if pid and alive(int(pid))]

    def wait(self, seconds: float) -> None:
        """Let it live on for so long, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def kill(self) -> None:
        """Kill every process of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)

    def until_it_trains(self) -> None:
        """Wait until a training has begun, or the workflow has ended."""
        while self.process.poll() is None and not self.trains():
            time.sleep(0.01)
