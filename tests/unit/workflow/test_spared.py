"""What Snakemake is spared for each job."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.enums import Quietness

from fedbench.workflow.spared import for_each_job, run_unseen


class Rules:
    """Asked by rules."""

    def __init__(self, answer: int) -> None:
        self.answer = answer

    @for_each_job
    def cores(self, wildcards: Any, threads: int = 1) -> int:
        """Return an answer."""
        return self.answer * threads


def test_the_parameters_of_what_rules_ask_are_looked_up_once() -> None:
    single, other = Rules(1), Rules(3)
    assert single.cores(None) == 1 and other.cores(None, threads=2) == 6
    first = inspect.signature(single.cores)
    assert [*first.parameters] == ["wildcards", "threads"] and inspect.signature(single.cores) is first


@pytest.mark.parametrize(
    ("quiet", "loggers", "dryrun", "scheduled"),
    [
        ({Quietness.RULES}, {}, True, False),
        ({Quietness.RULES, Quietness.REASON}, {}, True, False),
        ({Quietness.RULES}, {}, False, True),
        ({Quietness.RULES}, {"another": None}, True, True),
        ({Quietness.PROGRESS}, {}, True, True),
        (None, {}, True, True),
    ],
)
def test_only_a_dry_run_that_shows_no_jobs_schedules_none(
    quiet: set[Quietness] | None, loggers: dict[str, Any], dryrun: bool, scheduled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked = list[Any]()
    monkeypatch.setattr(JobScheduler, "schedule", lambda self: asked.append(self) or False)
    run_unseen(SimpleNamespace(quiet=quiet, log_handler_settings=loggers))
    scheduler: Any = SimpleNamespace(workflow=SimpleNamespace(dryrun=dryrun))
    assert JobScheduler.schedule(scheduler) == (not scheduled) and bool(asked) == scheduled
