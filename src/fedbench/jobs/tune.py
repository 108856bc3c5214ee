"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.jobs import metric_checks, preflight
from fedbench.jobs.choices import Choices, Rows
from fedbench.jobs.race import Runs, margin, mean_score, race
from fedbench.jobs.training import train_run
from fedbench.jobs.trials import trial_specs, trials_of, tunable
from fedbench.plan import configuration
from fedbench.plan.schema import Config, Paper, Value
from fedbench.plan.tuned import edges
from fedbench.specs import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store

Trial = tuple[dict[str, Any], list[RunSpec]]
"""The values that a trial tries, and its runs, which differ in their seed."""


class Scores:
    """Scores of a method's runs: taken from the files that have them, or measured by training.

    Args:
        config: where data and the device are.
        metric: the validation metric.
        trials: the values of each trial, and its runs.
        known: the trials that the files have, and the commits they were made at.
        whose: dataset and method, for the eye.
        say: told every score.
        note: told all trials with a score and their commits, whenever a run has been trained.

    Attributes:
        commits: commits of all runs asked for so far.
    """

    def __init__(
        self,
        config: Config,
        metric: str,
        trials: Sequence[Trial],
        known: tuple[Sequence[Mapping[str, Any]], str],
        whose: str,
        say: Callable[[str], None],
        note: Callable[[Rows, str], None],
    ) -> None:
        self._config, self._metric, self._trials, self._whose = config, metric, trials, whose
        self._say, self._note = say, note
        self._known: Runs = {key: score for row in known[0] for key, score in row["runs"].items()}
        self._known_commits = known[1].split()
        self.commits = set[str]()

    def of(self, spec: RunSpec) -> float | None:
        """Return a run's score to five digits, None where it diverged."""
        if spec.key in self._known:
            score = self._known[spec.key]
            self.commits.update(self._known_commits)
        else:
            record = train_run(spec, self._config, Store())
            score = self._known[spec.key] = self._score(record)
            self.commits.add(record.provenance.get("commit", ""))
            found = [
                {run.key: self._known[run.key] for run in runs if run.key in self._known}
                for _, runs in self._trials
            ]
            self._note(self.rows(found), _listed({*self.commits, *self._known_commits}))
        self._say(f"{self._whose} {spec.params} seed {spec.seed}: {self._metric} {score}")
        return score

    def rows(self, runs: Sequence[Runs]) -> Rows:
        """Return the trials with the scores of their ``runs``, without those that have none."""
        return [
            {**params, self._metric: mean_score(made), "runs": made}
            for (params, _), made in zip(self._trials, runs, strict=True)
            if made
        ]

    def _score(self, record: Record) -> float | None:
        if record.status == "diverged":
            return None
        if self._metric not in record.metrics:
            known = [name for name in record.metrics if name.startswith("val_")]
            raise UserError(f"{self._whose}: {unknown('metric to tune by', self._metric, known)}")
        value = record.metrics[self._metric]
        if value is None:
            raise UserError(
                f"{self._whose}: {self._metric} is undefined: the validation part lacks samples of a class;"
                " hold out more (`validation` in the section `tune`)"
            )
        return round(value, 5)


def tune_dataset(
    config: Config, paper_key: str, dataset: str, methods: Sequence[str] | None, say: Callable[[str], None]
) -> list[Path]:
    """Tune on a dataset, apart for each value of the setting in ``tune.each``, and return the files.

    Raises:
        UserError: as :func:`tune_at`, or there is nothing to try.
    """
    paper = configuration.load_paper(paper_key)
    if paper.tune is None:
        raise UserError(f"config/papers/{paper_key}.yaml has no section `tune`, so there is nothing to try")
    return [tune_at(config, paper, dataset, methods, values, say) for values in paper.tune.points()]


def tune_at(
    config: Config,
    paper: Paper,
    dataset: str,
    methods: Sequence[str] | None,
    values: Mapping[str, Value],
    say: Callable[[str], None],
) -> Path:
    """Run every trial of the methods (default: all), write the score table and the choice, and return the file.

    ``values`` is one of ``tune.points()``: the file is that of this value; methods without cells there are left out.

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the files have already
    (:class:`~fedbench.jobs.choices.Choices`) is not made again, wherever its store is: remove them to tune from
    nothing. A trial that diverges with one of its seeds has no score. Methods that are not named keep what was chosen
    for them; where that was by another protocol, the file stays as it is until the last of them is tuned by this one.

    Raises:
        UserError: a name is unknown, or all trials of a method diverged.
    """
    assert paper.tune is not None
    if dataset not in paper.datasets:
        raise unknown(f"dataset of {paper.key}", dataset, paper.datasets)
    for name in methods or []:
        if name not in paper.methods:
            raise unknown(f"method of {paper.key}", name, paper.methods)
    source = configuration.CONFIG_DIR / "papers" / f"{paper.key}.yaml"
    path = configuration.tuned_path(paper, dataset, values)
    here = tunable(paper, methods, {"dataset": dataset, **values}, source, say)
    paper = paper.model_copy(update={"tune": paper.tune.at(values)})
    assert paper.tune is not None
    tune = paper.tune.on(dataset)
    final = config.seeds if config.seeds is not None else configuration.load_scale(config.scale).seeds
    if shared := sorted({*tune.seeds} & {*final}):
        raise UserError(
            f"{source}: tune: seed {shared[0]} is one of the final runs'; tuning needs seeds of its own"
        )
    protocol = tune.model_dump(mode="json", exclude={"per_dataset"})
    protocol |= {"set": dict(config.set)} if config.set else {}
    header = f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n"
    choices = Choices(path, header, protocol)
    known = {name: choices.known(name) for name in here}
    trials: dict[str, list[Trial]] = {
        name: [
            (params, trial_specs(paper, dataset, name, params, config.set))
            for params in trials_of(paper, paper.methods[name], name)[: tune.trials]
        ]
        for name in here
    }
    preflight.check_runs((f"{source}: ", dataset, name, runs[0]) for name in here for _, runs in trials[name])
    for name in here:
        first = trials[name][0][1][0]
        if why := metric_checks.lacks(first, tune.metric, preflight.classes_of):
            raise UserError(f"{source}: tune.metric: {why.format(metric=tune.metric, dataset=dataset)}")
    for name in here:
        tried, whose = [params for params, _ in trials[name]], f"{path.stem} {name}"
        note = functools.partial(choices.note, name)
        scores = Scores(config, tune.metric, trials[name], known[name], whose, say, note)
        sign = paper.measure(tune.metric).sign
        runs, best = race([specs for _, specs in trials[name]], scores.of, sign)
        if mean_score(runs[best]) is None:
            raise UserError(f"every trial of {name} on {dataset} diverged; widen its grid in {source}")
        say(_choice(f"{dataset} {name}", tune.metric, tried, runs, best, sign))
        choices.choose(name, tried[best], scores.rows(runs), _listed(scores.commits))
    if waiting := choices.waiting(here):
        say(
            f"{path} stays as it is: {', '.join(waiting)} were tuned with another protocol than {source} describes"
            f" now. Tune them too (fedbench tune {dataset} {' '.join(waiting)} --paper {paper.key}) or remove the"
            f" file; until then the new choices wait in {choices.unfinished(here[0]).parent}"
        )
    return path


def _listed(commits: Iterable[str]) -> str:
    return " ".join(sorted(commits))


def _choice(
    whose: str, metric: str, trials: Sequence[dict[str, Any]], runs: Sequence[Runs], best: int, sign: int
) -> str:
    """Say what was chosen, and how far ahead it is."""
    count = len(runs[best])
    text = f"{whose}: chosen {trials[best]}, {metric} {mean_score(runs[best])} over {count} seed{'s' * (count > 1)}"
    for name in edges(trials[best], trials):
        text += f"; {name} is on an edge of the grid: widen it there"
    if (closest := margin(runs, best, sign)) is None:
        return f"{text}; no other trial has a score"
    place, behind, seeds = closest
    return f"{text}; {trials[place]} is {behind:.5f} behind on the {seeds} seed{'s' * (seeds > 1)} they share"
