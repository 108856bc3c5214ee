"""What Snakemake does for every job and can be spared: with thousands of cells it is a third of a dry run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

Self = TypeVar("Self")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def for_each_job(
    method: Callable[Concatenate[Self, Given], Answer],
) -> functools.cached_property[Callable[Given, Answer]]:
    """Make a method that a rule asks for each of its jobs; Snakemake looks up its parameters three times a job.

    They are looked up once here and stand where :func:`inspect.signature` finds them at once.
    """

    def bound(instance: Self) -> Callable[Given, Answer]:
        asked = functools.partial(method, instance)
        asked.__signature__ = inspect.signature(asked)  # type: ignore[attr-defined]
        return asked

    bound.__doc__ = method.__doc__
    return functools.cached_property(bound)


def run_unseen(shown: Any) -> None:
    """Let a dry run that shows no jobs (`--quiet rules`) end with its counts and reasons.

    Snakemake would pretend to run each job, and describe its inputs, resources and command, before it asks whether that
    is shown. Another logger may want to know of all jobs.

    Args:
        shown: what Snakemake puts out, its ``OutputSettings``.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler
    from snakemake.settings.enums import Quietness

    if Quietness.RULES in (shown.quiet or ()) and not shown.log_handler_settings:
        schedule = JobScheduler.schedule
        JobScheduler.schedule = lambda self: self.workflow.dryrun or schedule(self)
