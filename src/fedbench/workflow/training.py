"""What a call of the workflow does and says before, while and after its jobs run."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedbench import files
from fedbench.store.runs import STORE, Store
from fedbench.study.cells import Cell
from fedbench.train import progress
from fedbench.workflow import failures
from fedbench.workflow.rule_functions import RuleFunctions, or_exit


class Training:
    """The jobs of a call, whose cells ``call`` knows; ``workflow`` is Snakemake's."""

    def __init__(self, workflow: Any, call: RuleFunctions) -> None:
        self._workflow, self._call = workflow, call
        self._logs_before: dict[str, files.Mark | None] = {}
        self._began, self._before = time.monotonic(), 0.0
        """When this call began to train, and how many cells were done."""
        self._told, self._over = "", threading.Event()

    def begin(self) -> None:
        """Check what is to be trained, and the disk, before any job; note which logs are old; tell how it stands."""
        gc.enable()  # off since the first rule was read
        waiting = [*self._workflow.dag.needrun_jobs()]
        self._logs_before.update({name: files.mark(Path(name)) for job in waiting for name in job.log})
        trained = [self._call.cell(job.wildcards) for job in waiting if job.rule.name == "train"]
        written = [Path(file) for job in waiting for file in [*job.output, *job.log]]
        or_exit(check_disks, [*written, *(STORE / run.key for cell in trained for run in cell.runs)])
        if trained:
            self._call.check(trained)
            self._tell_untuned(trained)
            config = self._call.config
            if config.compile:
                from fedbench.engine import compiled  # not above: PyTorch takes seconds

                or_exit(compiled.check_compiler, config.compile, config.device)
            threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        """Tell how the training stands whenever that has changed."""
        while not self._over.wait(progress.LOG_SECONDS):
            with contextlib.suppress(RuntimeError):  # the scheduler changed its lists meanwhile
                self.tell()

    def _tell_untuned(self, trained: Iterable[Cell]) -> None:
        """Say in a line for each paper which of its cells are not tuned, before a night of training."""
        by_paper: dict[str, list[Cell]] = {}
        for cell in trained:
            by_paper.setdefault(cell.paper, []).append(cell)
        for paper, cells in by_paper.items():
            if line := or_exit(self._call.inputs.plan(paper).untuned_warning, cells):
                say(line)

    def tell(self) -> None:
        """Say in one line how many cells are trained, in training, failed and left, and how long that takes.

        Nothing is said where none is trained, or what was said last. Where each of those in training is, `fedbench
        list` says from another terminal.
        """
        dag, scheduler = self._workflow.dag, self._workflow.scheduler
        trained = [job for job in dag.jobs if job.rule.name == "train"]
        at_work = {*_single(scheduler.running)}
        running = sum(job in at_work for job in trained)
        failed = sum(job in scheduler.failed for job in trained)
        waiting = [job for job in trained if dag.needrun(job) and not dag.finished(job)]
        done = len(trained) - len(waiting)
        counts = progress.counts(len(trained), done, running, failed)
        if trained and counts != self._told:
            part = done + sum(progress.share_done(self._call.cell(job.wildcards), Store()) for job in waiting)
            if not self._told:  # what was done before is no part of the pace
                self._began, self._before = time.monotonic(), part
            left, seconds = len(trained) - failed - part, time.monotonic() - self._began
            say(counts + progress.time_left(self._before, part, left, seconds))
            self._told = counts

    def tell_the_end(self) -> None:
        """Say in a last line how the training stands."""
        self._over.set()
        self.tell()

    def explain_failures(self) -> None:
        """Say which jobs did not finish, why, and how to run one alone; build what they feed from what there is."""
        jobs = [_described(job) for job in self._workflow.dag.needrun_jobs() if job.is_shell]
        failures.explain(jobs, self._logs_before)
        failures.build_from_what_is_there(jobs)


def _single(jobs: Iterable[Any]) -> Iterator[Any]:
    """Yield jobs, those of a group apart."""
    for item in [*jobs]:
        yield from item if item.is_group() else [item]


def _described(job: Any) -> failures.Job:
    shown = tuple(map(str, job.input.get("shown", job.input)))
    return failures.Job(job.rule.name, str(job.output[0]), str(job.log[0]), job.shellcmd, shown)


def check_disks(paths: Iterable[Path]) -> None:
    """Refuse to begin while one of the folders that take these files takes none.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    for folder in sorted({next(folder for folder in path.parents if folder.is_dir()) for path in paths}):
        files.check_room(folder)


def say(line: str) -> None:
    """Print a line at once, in a terminal and in a log alike."""
    print(line, file=sys.stderr, flush=True)
