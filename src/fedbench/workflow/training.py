"""What a call of the workflow does and says before, while and after its jobs run, and when some have failed."""

from __future__ import annotations

import contextlib
import gc
import itertools
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedbench import files
from fedbench.store.runs import STORE, Store
from fedbench.study.cells import Cell
from fedbench.train import progress
from fedbench.workflow.rule_functions import RuleFunctions, or_exit

LINES = 8
"""How much of a log is shown."""
FED = ("table", "figure", "claims", "own_table", "own_figure", "page")
"""Rules, in order, whose jobs are done all the same from what is there."""


@dataclass(frozen=True)
class Job:
    """A job that did not finish.

    Attributes:
        rule: whose it is.
        output: the first file it makes.
        log: where its output goes.
        command: what it runs, as a shell takes it.
        shown: the files it shows, of its inputs.
    """

    rule: str
    output: str
    log: str
    command: str
    shown: tuple[str, ...] = field(default=())

    @property
    def words(self) -> list[str]:
        """The command as a list, without where its output goes: nothing in it is read by a shell again."""
        return list(itertools.takewhile(lambda word: word != ">", shlex.split(self.command)))

    @property
    def alone(self) -> str:
        """The same as a user types it."""
        return shlex.join(self.words)


def explain(jobs: Iterable[Job], logs_before: Mapping[str, files.Mark | None]) -> None:
    """Say of each job that was tried how its log ends, and how to run it alone.

    A log that is as it was in ``logs_before``, at the start of this call, is an earlier call's.
    """
    for job in sorted(jobs, key=lambda job: job.output):
        if files.mark(Path(job.log)) in (None, logs_before.get(job.log)):
            continue
        said = Path(job.log).read_text(errors="replace").splitlines()[-LINES:]
        say(f"\nnot finished: {job.output}", *(f"    {line}" for line in said))
        say(f"  its log:      {job.log}", f"  run it alone: {job.alone}")


def build_from_what_is_there(jobs: Iterable[Job]) -> None:
    """Run the jobs that show others' results, as far as there are any. The next call tries the missing ones again."""
    waiting = list(jobs)
    for rule in FED:
        for job in (job for job in waiting if job.rule == rule):
            shows = any(Path(name).exists() for name in job.shown)
            if shows and not subprocess.run(job.words, check=False).returncode:  # else its own words say why
                say(f"\nbuilt from the cells that are there: {job.output}")


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
        explain(jobs, self._logs_before)
        build_from_what_is_there(jobs)


def _single(jobs: Iterable[Any]) -> Iterator[Any]:
    """Yield jobs, those of a group apart."""
    for item in [*jobs]:
        yield from item if item.is_group() else [item]


def _described(job: Any) -> Job:
    shown = tuple(map(str, job.input.get("shown", job.input)))
    return Job(job.rule.name, str(job.output[0]), str(job.log[0]), job.shellcmd, shown)


def check_disks(paths: Iterable[Path]) -> None:
    """Refuse to begin while one of the folders that take these files takes none.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    for folder in sorted({next(folder for folder in path.parents if folder.is_dir()) for path in paths}):
        files.check_room(folder)


def say(*lines: str) -> None:
    """Print lines at once, in a terminal and in a log alike."""
    print(*lines, sep="\n", file=sys.stderr, flush=True)
