"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.jobs import preflight
from fedbench.jobs.choices import Choice, Choices
from fedbench.jobs.progress import time_left
from fedbench.jobs.race import Race, Rule, Runs, margin, race
from fedbench.jobs.scores import Scores, Trial
from fedbench.jobs.trials import trial_specs, trials_of, tunable
from fedbench.jobs.workers import Workers, workers
from fedbench.plan import configuration
from fedbench.plan.schema import Config, Paper, Value
from fedbench.plan.tuned import edges
from fedbench.store.runs import Store


def tune_dataset(
    config: Config,
    paper_key: str,
    dataset: str,
    methods: Sequence[str] | None,
    say: Callable[[str], None],
    cores: int = 1,
) -> list[Path]:
    """Tune on a dataset, apart for each value of the setting in ``tune.each``, and return the files.

    ``cores`` runs are trained at a time, those of several methods too.

    Raises:
        UserError: a name is unknown, there is nothing to try, or all trials of a method diverged.
    """
    paper = configuration.load_paper(paper_key)
    if paper.tune is None:
        raise UserError(f"config/papers/{paper_key}.yaml has no section `tune`, so there is nothing to try")
    if dataset not in paper.datasets:
        raise unknown(f"dataset of {paper.key}", dataset, paper.datasets)
    for name in methods or []:
        if name not in paper.methods:
            raise unknown(f"method of {paper.key}", name, paper.methods)
    with workers(config, cores) as pool:
        points = paper.tune.points()
        return [Tuning(config, paper, dataset, values, say).run(methods, pool) for values in points]


class Tuning:
    """The tuning on a dataset at one of ``tune.points()``, whose choices go to one file.

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the file has already is
    not made again, wherever its store is: remove the file to tune from nothing. A trial with a failed run, a short one
    too, has no score. Methods that are not named keep what was chosen for them; where that was by another protocol,
    the file stays as it is until one call tunes all of them.
    """

    def __init__(
        self,
        config: Config,
        paper: Paper,
        dataset: str,
        values: Mapping[str, Value],
        say: Callable[[str], None],
    ) -> None:
        assert paper.tune is not None
        self._config, self._dataset, self._values, self._say = config, dataset, values, say
        self._source = configuration.CONFIG_DIR / "papers" / f"{paper.key}.yaml"
        self._path = configuration.tuned_path(paper, dataset, values)
        at_values = paper.tune.at(values)
        self._paper, self._tune = paper.model_copy(update={"tune": at_values}), at_values.on(dataset)
        protocol = self._tune.protocol() | ({"set": dict(config.set)} if config.set else {})
        header = f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n"
        self._choices = Choices(self._path, header, protocol, paper.methods)

    def run(self, methods: Sequence[str] | None, pool: Workers) -> Path:
        """Run every trial of the methods (default: all), write the scores and the choices, and return the file.

        Methods without cells at this value are left out.
        """
        at = {"dataset": self._dataset, **self._values}
        tuned = tunable(self._paper, methods, at, self._source, self._say)
        self._check_seeds()
        known = {name: self._choices.known(name) for name in tuned}
        trials = {name: self._trials(name) for name in tuned}
        self._check(trials)
        rules = {name: self._rule(trials[name]) for name in tuned}
        scores = {
            name: Scores(trials[name], rules[name], known[name], f"{self._path.stem} {name}", self._say)
            for name in tuned
        }
        races = {name: race([specs for _, specs in trials[name]], rules[name]) for name in tuned}
        chosen = dict[str, Choice]()
        for name, (runs, best) in _run(races, scores, pool):
            if rules[name].mean(runs[best]) is None:
                raise UserError(
                    f"every trial of {name} on {self._dataset} diverged; widen its grid in {self._source}"
                )
            tried = [params for params, _ in trials[name]]
            self._say(_choice(f"{self._dataset} {name}", tried, runs, best, rules[name]))
            commits = " ".join(sorted(scores[name].commits))
            chosen[name] = Choice(commits, tried[best], scores[name].rows(runs))
            self._choices.write(chosen)
        if tuned:
            self._tell_waiting(tuned)
        return self._path

    def _trials(self, method: str) -> list[Trial]:
        params = trials_of(self._paper, self._paper.methods[method], method)[: self._tune.trials]
        given = self._config.set
        return [(each, trial_specs(self._paper, self._dataset, method, each, given)) for each in params]

    def _check_seeds(self) -> None:
        """Raise UserError where a seed of the trials is one of the final runs."""
        config, stable = self._config, self._tune.stable
        final = config.seeds if config.seeds is not None else configuration.load_scale(config.scale).seeds
        if shared := sorted({*self._tune.seeds, *(stable.seeds if stable else [])} & {*final}):
            raise UserError(
                f"{self._source}: tune: seed {shared[0]} is one of the final runs'; tuning needs seeds of its own"
            )

    def _check(self, trials: Mapping[str, Sequence[Trial]]) -> None:
        """Check all runs of the trials, and whether they will have the metrics that judge them."""
        preflight.check_runs(
            (f"{self._source}: ", self._dataset, name, run)
            for name, tried in trials.items()
            for _, runs in tried
            for run in runs
        )
        asked = (("tune.metric", self._tune.metric), ("tune.stable.metric", self._short_metric))
        for tried in trials.values():
            for place, metric in asked:
                if why := preflight.lacks(tried[0][1][0], metric):
                    raise UserError(f"{self._source}: {place} on {self._dataset}: {why}")

    @property
    def _short_metric(self) -> str:
        """The metric of the short runs."""
        return (self._tune.stable and self._tune.stable.metric) or self._tune.metric

    def _rule(self, trials: Sequence[Trial]) -> Rule:
        tune = self._tune
        return Rule(
            metric=tune.metric,
            sign=self._paper.measure(tune.metric).sign,
            short=frozenset(run.key for _, runs in trials for run in runs[len(tune.seeds) :]),
            reach=tune.stable.reach if tune.stable is not None else None,
            short_metric=self._short_metric,
            short_sign=self._paper.measure(self._short_metric).sign,
        )

    def _tell_waiting(self, tuned: Sequence[str]) -> None:
        """Say which other methods have to be tuned too before the file is replaced."""
        if not (waiting := self._choices.waiting(tuned)):
            return
        command = f"fedbench tune {self._dataset} {' '.join([*tuned, *waiting])} --paper {self._paper.key}"
        self._say(
            f"{self._path} stays as it is: {', '.join(waiting)} were tuned with another protocol. Tune all in one call "
            f"({command}{', with the same --set' if self._config.set else ''}): the trials made now are in "
            f"{Store().root} and are not trained again. Or remove the file"
        )


def _run(
    races: Mapping[str, Race], scores: Mapping[str, Scores], pool: Workers
) -> Iterator[tuple[str, tuple[list[Runs], int]]]:
    """Run the races of several methods, the first methods' runs first, and yield each race that ends."""
    wanted = {name: next(race) for name, race in races.items()}
    begun = dict[str, str]()  # runs, and for whom
    start, trained = 0.0, 0  # of runs that the store does not have
    while wanted:
        for name in [*wanted]:
            try:
                while all(map(scores[name].has, wanted[name])):
                    wanted[name] = races[name].send([*map(scores[name].of, wanted[name])])
            except StopIteration as end:
                del wanted[name]
                yield name, end.value
        for name, specs in wanted.items():
            for spec in specs:
                if pool.free and spec.key not in begun and not scores[name].has(spec):
                    if not start and not Store().path(spec.key).exists():
                        start = time.monotonic()
                    pool.begin(spec)
                    begun[spec.key] = name
        if begun:
            for spec, record in pool.finished():
                trained += start > 0
                left = sum(not scores[name].has(run) for name, specs in wanted.items() for run in specs) - 1
                pace = time_left(0, trained, left, time.monotonic() - start)
                scores[begun.pop(spec.key)].add(spec, record, pace)


def _choice(whose: str, trials: Sequence[dict[str, Any]], runs: Sequence[Runs], best: int, rule: Rule) -> str:
    """Say what was chosen, and how far ahead it is."""
    count = rule.seeds(runs[best])
    text = f"{whose}: chosen {trials[best]}, {rule.metric} {rule.mean(runs[best])} over {count} seed{'s' * (count > 1)}"
    if short := len(runs[best]) - count:
        text += f"; none of its {short} short runs failed"
    for name in edges(trials[best], trials):
        text += f"; {name} is at the boundary of the grid: widen it there"
    if (closest := margin(runs, best, rule)) is None:
        return f"{text}; no other trial has a score"
    place, behind, seeds = closest
    return f"{text}; {trials[place]} is {behind:.5f} behind on the {seeds} seed{'s' * (seeds > 1)} they share"
