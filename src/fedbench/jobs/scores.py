"""Scores of a method's trials: from the file that has them, and from the runs that are trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.jobs.choices import Rows
from fedbench.jobs.race import Rule, Runs
from fedbench.specs import RunSpec
from fedbench.store.record import Record

Trial = tuple[dict[str, Any], list[RunSpec]]
"""The values that a trial tries, and its runs, which differ in their seed."""


class Scores:
    """Scores of a method's runs: those that the file has, and those of the runs that are trained now.

    Args:
        trials: the values of each trial, and its runs.
        rule: how these are judged.
        known: the trials that the file has, and the commits they were made at.
        whose: dataset and method, for the eye.
        say: told every score.

    Attributes:
        commits: commits of all runs that were trained or asked for so far.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        rule: Rule,
        known: tuple[Rows, str],
        whose: str,
        say: Callable[[str], None],
    ) -> None:
        self._trials, self._rule, self._whose, self._say = trials, rule, whose, say
        rows, commits = known
        self._known: Runs = {
            key: score for row in rows for key, score in {**row["runs"], **row.get("short", {})}.items()
        }
        self._known_commits = commits.split()
        self._trained: Runs = {}
        self.commits = set[str]()

    def has(self, spec: RunSpec) -> bool:
        """Say whether the score of a run is there."""
        return spec.key in self._trained or spec.key in self._known

    def add(self, spec: RunSpec, record: Record, left: str = "") -> None:
        """Take the score of a run that has been trained, and say it with how long others take that are ``left``."""
        self._trained[spec.key] = self._score(record, self._rule.metric_of(spec.key))
        self.commits.add(record.provenance.get("commit", ""))
        self._tell(spec, left)

    def of(self, spec: RunSpec) -> float | None:
        """Return a run's score to five digits, None where it diverged."""
        if spec.key in self._trained:
            return self._trained[spec.key]
        self.commits.update(self._known_commits)
        self._tell(spec)
        return self._known[spec.key]

    def _tell(self, spec: RunSpec, left: str = "") -> None:
        score = (self._known | self._trained)[spec.key]
        short = ", short" if spec.key in self._rule.short else ""
        number = next(
            n for n, (_, runs) in enumerate(self._trials, 1) if spec.key in {run.key for run in runs}
        )
        trial = f"{self._whose}, trial {number} of {len(self._trials)}, seed {spec.seed}{short}"
        shown = "diverged" if score is None else f"{self._rule.metric_of(spec.key)} {score}"
        self._say(f"{trial}: {shown}{left}  {spec.params}")

    def rows(self, runs: Sequence[Runs]) -> Rows:
        """Return the trials with the scores of their ``runs``."""
        return [self._row(params, made) for (params, _), made in zip(self._trials, runs, strict=True)]

    def _row(self, params: Mapping[str, Any], made: Runs) -> dict[str, Any]:
        runs = {key: score for key, score in made.items() if key not in self._rule.short}
        short = {key: score for key, score in made.items() if key in self._rule.short}
        row = {**params, self._rule.metric: self._rule.mean(made), "runs": runs}
        return row | {"short": short} if short else row

    def _score(self, record: Record, metric: str) -> float | None:
        if record.status == "diverged":
            return None
        if metric not in record.metrics:
            known = [name for name in record.metrics if name.startswith("val_")]
            raise UserError(f"{self._whose}: {unknown('metric to tune by', metric, known)}")
        value = record.metrics[metric]
        if value is None:
            raise UserError(
                f"{self._whose}: {metric} is undefined: the validation part lacks samples of a class;"
                " hold out more (`validation` in the section `tune`)"
            )
        return round(value, 5)
