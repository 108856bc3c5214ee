"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.jobs import choices, metric_checks, preflight
from fedbench.jobs.race import Runs, margin, mean_score, race
from fedbench.jobs.training import train_run
from fedbench.jobs.trials import trial_specs, trials_of, tunable
from fedbench.plan import configuration
from fedbench.plan.schema import Config, Paper, Value
from fedbench.plan.tuned import edges
from fedbench.specs import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store


class Scores:
    """Scores of a method's runs: taken from the file that has them, or measured by training.

    Args:
        config: where data and the device are.
        metric: the validation metric.
        rows: what the file says of the method's trials.
        commits: and of the commits they were made at.
        whose: dataset and method, for the eye.
        say: told every score.

    Attributes:
        commits: commits of all runs asked for so far.
    """

    def __init__(
        self,
        config: Config,
        metric: str,
        rows: Sequence[dict[str, Any]],
        commits: str,
        whose: str,
        say: Callable[[str], None],
    ) -> None:
        self._config, self._metric, self._whose, self._say = config, metric, whose, say
        self._known: Runs = {key: score for row in rows for key, score in row["runs"].items()}
        self._known_commits = commits.split()
        self.commits = set[str]()

    def of(self, spec: RunSpec) -> float | None:
        """Return a run's score to five digits, None where it diverged."""
        if spec.key in self._known:
            score = self._known[spec.key]
            self.commits.update(self._known_commits)
        else:
            record = train_run(spec, self._config, Store())
            score = self._score(record)
            self.commits.add(record.provenance.get("commit", ""))
        self._say(f"{self._whose} {spec.params} seed {spec.seed}: {self._metric} {score}")
        return score

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

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the file has already is
    not made again, wherever its store is: remove the file to tune from nothing. A trial that diverges with one of its
    seeds has no score. Methods that are not named keep what was chosen for them, as long as it was chosen the same
    way.

    Raises:
        UserError: a name is unknown, all trials of a method diverged, or the file's other methods were tuned with
            another protocol, so that the choices would not be comparable.
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
    known = choices.read(path)
    others = [name for name in known.get("chosen", {}) if name not in here]
    if others and known.get("protocol") != protocol:
        raise UserError(
            f"{path}: {', '.join(others)} were tuned with another protocol than {source} describes now;"
            f" tune all methods again (fedbench tune {dataset} --paper {paper.key}) or remove the file"
        )
    chosen, scores, commits = dict[str, Any](), dict[str, Any](), dict[str, str]()
    grids = {name: trials_of(paper, paper.methods[name], name)[: tune.trials] for name in here}
    runs_of = {
        name: [trial_specs(paper, dataset, name, params, config.set) for params in trials]
        for name, trials in grids.items()
    }
    preflight.check_runs(
        (f"{source}: ", dataset, name, specs[0]) for name, trials in runs_of.items() for specs in trials
    )
    for first, *_ in runs_of.values():
        if why := metric_checks.lacks(first[0], tune.metric, preflight.classes_of):
            raise UserError(f"{source}: tune.metric: {why.format(metric=tune.metric, dataset=dataset)}")
    for name in here:
        known_rows = known.get("scores", {}).get(name, [])
        known_commits = known.get("commits", {}).get(name, "")
        measured = Scores(config, tune.metric, known_rows, known_commits, f"{path.stem} {name}", say)
        trials, sign = grids[name], paper.measure(tune.metric).sign
        runs, best = race(runs_of[name], measured.of, sign)
        rows = [
            {**params, tune.metric: mean_score(made), "runs": made}
            for params, made in zip(trials, runs, strict=True)
        ]
        if rows[best][tune.metric] is None:
            raise UserError(f"every trial of {name} on {dataset} diverged; widen its grid in {source}")
        say(_choice(f"{dataset} {name}", tune.metric, trials, runs, best, sign))
        chosen[name], scores[name], commits[name] = trials[best], rows, " ".join(sorted(measured.commits))
    choices.add(
        path,
        f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n",
        protocol,
        {"commits": commits, "chosen": chosen, "scores": scores},
    )
    return path


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
