"""What is said and done when jobs of the workflow have failed."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedbench import files

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
        _say(f"\nnot finished: {job.output}", *(f"    {line}" for line in said))
        _say(f"  its log:      {job.log}", f"  run it alone: {job.alone}")


def build_from_what_is_there(jobs: Iterable[Job]) -> None:
    """Run the jobs that show others' results, as far as there are any. The next call tries the missing ones again."""
    waiting = list(jobs)
    for rule in FED:
        for job in (job for job in waiting if job.rule == rule):
            shows = any(Path(name).exists() for name in job.shown)
            if shows and not subprocess.run(job.words, check=False).returncode:  # else its own words say why
                _say(f"\nbuilt from the cells that are there: {job.output}")


def _say(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)
