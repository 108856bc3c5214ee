"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.jobs import metric_checks, preflight
from fedbench.jobs.choices import Choices
from fedbench.jobs.race import Race, Rule, Runs, margin, race
from fedbench.jobs.scores import Scores, Trial, listed
from fedbench.jobs.trials import trial_specs, trials_of, tunable
from fedbench.jobs.workers import Workers, workers
from fedbench.plan import configuration
from fedbench.plan.schema import Config, Paper, Value
from fedbench.plan.tuned import edges


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
        UserError: as :func:`tune_at`, or there is nothing to try.
    """
    paper = configuration.load_paper(paper_key)
    if paper.tune is None:
        raise UserError(f"config/papers/{paper_key}.yaml has no section `tune`, so there is nothing to try")
    with workers(config, cores) as pool:
        return [tune_at(config, paper, dataset, methods, values, say, pool) for values in paper.tune.points()]


def tune_at(
    config: Config,
    paper: Paper,
    dataset: str,
    methods: Sequence[str] | None,
    values: Mapping[str, Value],
    say: Callable[[str], None],
    pool: Workers,
) -> Path:
    """Run every trial of the methods (default: all), write the score table and the choice, and return the file.

    ``values`` is one of ``tune.points()``: the file is that of this value; methods without cells there are left out.

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the files have already
    (:class:`~fedbench.jobs.choices.Choices`) is not made again, wherever its store is: remove them to tune from
    nothing. A trial of which a run fails, a short one too, has no score. Methods that are not named keep what was
    chosen for them; where that was by another protocol, the file stays as it is until the last of them is tuned by
    this one.

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
    short_seeds = tune.stable.seeds if tune.stable is not None else []
    short_metric = (tune.stable.metric if tune.stable is not None else None) or tune.metric
    if shared := sorted({*tune.seeds, *short_seeds} & {*final}):
        raise UserError(
            f"{source}: tune: seed {shared[0]} is one of the final runs'; tuning needs seeds of its own"
        )
    protocol = tune.protocol() | ({"set": dict(config.set)} if config.set else {})
    header = f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n"
    choices = Choices(path, header, protocol, paper.methods)
    known = {name: choices.known(name) for name in here}
    trials: dict[str, list[Trial]] = {
        name: [
            (params, trial_specs(paper, dataset, name, params, config.set))
            for params in trials_of(paper, paper.methods[name], name)[: tune.trials]
        ]
        for name in here
    }
    preflight.check_runs(
        (f"{source}: ", dataset, name, run) for name in here for _, runs in trials[name] for run in runs
    )
    for name in here:
        first = trials[name][0][1][0]
        for place, metric in (("tune.metric", tune.metric), ("tune.stable.metric", short_metric)):
            if why := metric_checks.lacks(first, metric, preflight.classes_of):
                raise UserError(f"{source}: {place}: {why.format(metric=metric, dataset=dataset)}")
    rules = {
        name: Rule(
            paper.measure(tune.metric).sign,
            frozenset(run.key for _, runs in trials[name] for run in runs[len(tune.seeds) :]),
            tune.stable.reach if tune.stable is not None else None,
            paper.measure(short_metric).sign,
        )
        for name in here
    }
    scores = {
        name: Scores(
            tune.metric,
            short_metric,
            trials[name],
            rules[name],
            known[name],
            f"{path.stem} {name}",
            say,
            functools.partial(choices.note, name),
        )
        for name in here
    }
    races = {name: race([specs for _, specs in trials[name]], rules[name]) for name in here}
    for name, (runs, best) in _run(races, scores, pool):
        if rules[name].mean(runs[best]) is None:
            raise UserError(f"every trial of {name} on {dataset} diverged; widen its grid in {source}")
        tried = [params for params, _ in trials[name]]
        say(_choice(f"{dataset} {name}", tune.metric, tried, runs, best, rules[name]))
        choices.choose(name, tried[best], scores[name].rows(runs), listed(scores[name].commits))
    if waiting := choices.waiting(here):
        command = f"fedbench tune {dataset} {' '.join(waiting)} --paper {paper.key}"
        say(
            f"{path} stays as it is: {', '.join(waiting)} were tuned with another protocol. Tune them too ({command}"
            f"{', with the same --set' if config.set else ''}) or remove the file; until then the new choices wait in"
            f" {choices.unfinished(here[0]).parent}"
        )
    return path


def _run(
    races: Mapping[str, Race], scores: Mapping[str, Scores], pool: Workers
) -> Iterator[tuple[str, tuple[list[Runs], int]]]:
    """Run the races of several methods, the first methods' runs first, and yield each race that ends."""
    wanted = {name: next(race) for name, race in races.items()}
    begun = dict[str, str]()  # runs, and for whom
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
                    pool.begin(spec)
                    begun[spec.key] = name
        if begun:
            for spec, record in pool.finished():
                scores[begun.pop(spec.key)].add(spec, record)


def _choice(
    whose: str,
    metric: str,
    trials: Sequence[dict[str, Any]],
    runs: Sequence[Runs],
    best: int,
    rule: Rule,
) -> str:
    """Say what was chosen, and how far ahead it is."""
    count = rule.seeds(runs[best])
    text = f"{whose}: chosen {trials[best]}, {metric} {rule.mean(runs[best])} over {count} seed{'s' * (count > 1)}"
    if short := len(runs[best]) - count:
        text += f"; none of its {short} short runs failed"
    for name in edges(trials[best], trials):
        text += f"; {name} is on an edge of the grid: widen it there"
    if (closest := margin(runs, best, rule)) is None:
        return f"{text}; no other trial has a score"
    place, behind, seeds = closest
    return f"{text}; {trials[place]} is {behind:.5f} behind on the {seeds} seed{'s' * (seeds > 1)} they share"
