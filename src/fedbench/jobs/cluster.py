"""Makes the job arrays of Snakemake's SLURM executor (snakemake-executor-plugin-slurm 2.8) do what they promise."""

from __future__ import annotations

import base64
import functools
import json
import os
import sys
import zlib
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from fedbench.errors import UserError

PLUGIN, MENDED = "snakemake-executor-plugin-slurm", "2.8"
COMMANDS = "--slurm-jobstep-array-execs"


def check(executor: str) -> None:
    """Refuse to begin on SLURM with a version of the plugin that the functions below have not been tested with.

    Raises:
        UserError: it is another one than 2.8; its arrays may wait for ever, or lose jobs.
    """
    if executor == "slurm" and not f"{(installed := version(PLUGIN))}.".startswith(f"{MENDED}."):
        raise UserError(
            f"{PLUGIN} {installed} is installed, and job arrays are mended for {MENDED} alone: "
            f'pip install "{PLUGIN}=={MENDED}.*", or use --workflow-profile cluster-generic'
        )


def mend_arrays() -> None:
    """Let the executor submit the jobs it is handed at once, in arrays of jobs that ask for the same.

    On its own it waits until all ready jobs of a kind are handed over together and forgets those it was handed
    meanwhile: where a cap on GPUs holds some jobs back it stands still for ever (its issue 473). Here it is
    told that no job is held back. And it asks for a whole array what its first job needs, so that a retry could get no
    more than the jobs beside it. Without the executor, or where it has no such function, this does nothing.
    """
    plugin = sys.modules.get("snakemake_executor_plugin_slurm")
    if plugin is None or not hasattr(plugin, "pending_jobs_for_rule"):
        return
    plugin.pending_jobs_for_rule = lambda dag, rule_name: 0  # type: ignore[attr-defined]
    submit = plugin.Executor.run_jobs

    @functools.wraps(submit)
    def run_jobs(executor: Any, jobs: Iterable[Any]) -> None:
        alike: dict[tuple[tuple[str, str], ...], list[Any]] = {}
        for job in jobs:
            needs = tuple(sorted((name, str(value)) for name, value in job.resources.items()))
            alike.setdefault(needs, []).append(job)
        for some in alike.values():
            submit(executor, some)

    plugin.Executor.run_jobs = run_jobs


def run_own_task() -> None:
    """In a task of an array that is not its first, become the Snakemake of the task's own job.

    The executor starts all tasks as the first job. It has the other jobs' commands with it and runs the right one, but
    then looks for the first job's results and fails unless they are there already (its issue 447).
    """
    task, first = (os.environ.get(f"SLURM_ARRAY_TASK_{name}") for name in ("ID", "MIN"))
    given = [part for part in sys.argv if part.startswith(f"{COMMANDS}=")]
    if task is None or task == first or not given:
        return
    command = json.loads(base64.b64decode(given[0].partition("=")[2]))[task]
    os.execvp("sh", ["sh", "-c", zlib.decompress(bytes.fromhex(command)).decode()])
