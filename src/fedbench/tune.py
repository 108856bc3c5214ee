"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from fedbench import cells, configuration, files
from fedbench.configuration import merged
from fedbench.errors import UserError, unknown
from fedbench.runs import Record, Store
from fedbench.schema import Config, MethodEntry, Paper, Scale
from fedbench.specs import RunSpec
from fedbench.training import train_run

Runs = dict[str, float | None]
"""Scores of a trial's runs by their keys in the store, None where one diverged."""


def trials_of(paper: Paper, method: MethodEntry, name: str) -> list[dict[str, Any]]:
    """List the combinations a method tries: its whole grid, which must have exactly ``paper.tune.trials`` of them."""
    assert paper.tune is not None
    options = [
        [dict(zip(names.split(", "), _listed(value), strict=True)) for value in values]
        for names, values in method.grid.items()
    ]
    trials = [dict(merged(*chosen)) for chosen in itertools.product(*options)]
    if len(trials) != paper.tune.trials:
        raise UserError(
            f"{paper.key}: the grid of {name} has {len(trials)} combinations,"
            f" but every method gets {paper.tune.trials}"
        )
    return trials


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def trial_specs(paper: Paper, dataset: str, method: str, params: dict[str, Any]) -> list[RunSpec]:
    """Resolve the runs of one trial, one for each seed: the paper's setting with training data held out."""
    assert paper.tune is not None
    tune = paper.tune.on(dataset)
    scale = Scale(name="tune", description="", seeds=tune.seeds, papers={})
    setting = {name: tune.setting.get(name, entry.default) for name, entry in paper.settings.items()}
    extra = {"params": params, "train": tune.train, "data": {"validation": tune.validation}}
    return [
        cells.resolve(paper, scale, dataset, setting, method, seed, extra=extra, tuned={})
        for seed in tune.seeds
    ]


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


def race(
    trials: Sequence[Sequence[RunSpec]], score: Callable[[RunSpec], float | None]
) -> tuple[list[Runs], int]:
    """Run the trials of one method, each a list of runs that differ in their seed, and find the best.

    All run with the first seed. Then the trial with the best mean so far runs with its next one, until the trial that
    leads has run with all. Ties go to the earlier trial.

    Returns:
        The scores of each trial's runs by their keys, and the place of the best trial.
    """
    runs: list[Runs] = [{specs[0].key: score(specs[0])} for specs in trials]

    def loss(place: int) -> float:
        mean = mean_score(runs[place])
        return math.inf if mean is None else -mean

    while True:
        ahead = min(range(len(trials)), key=loss)
        left = trials[ahead][len(runs[ahead]) :]
        if not left or loss(ahead) == math.inf:
            return runs, ahead
        runs[ahead][left[0].key] = score(left[0])


def mean_score(runs: Runs) -> float | None:
    """Return the mean score of a trial's runs, to five digits; None where one of them diverged."""
    scores = [score for score in runs.values() if score is not None]
    return round(statistics.fmean(scores), 5) if len(scores) == len(runs) else None


def tune_dataset(
    config: Config, paper_key: str, dataset: str, methods: Sequence[str] | None, say: Callable[[str], None]
) -> Path:
    """Run every trial of the methods (default: all), write the score table and the choice, and return the file.

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the file has already is
    not made again, wherever its store is: remove the file to tune from nothing. A trial that diverges with one of its
    seeds has no score. Methods that are not named keep what was chosen for them, as long as it was chosen the same
    way.

    Raises:
        UserError: a name is unknown, all trials of a method diverged, or the file's other methods were tuned with
            another protocol, so that the choices would not be comparable.
    """
    paper = configuration.load_paper(paper_key)
    if paper.tune is None:
        raise UserError(f"config/papers/{paper_key}.yaml has no section `tune`, so there is nothing to try")
    if dataset not in paper.datasets:
        raise unknown(f"dataset of {paper_key}", dataset, paper.datasets)
    for name in methods or []:
        if name not in paper.methods:
            raise unknown(f"method of {paper_key}", name, paper.methods)
    source = configuration.CONFIG_DIR / "papers" / f"{paper_key}.yaml"
    path = configuration.CONFIG_DIR / "tuned" / paper_key / f"{dataset}.yaml"
    tune = paper.tune.on(dataset)
    final = config.seeds if config.seeds is not None else configuration.load_scale(config.scale).seeds
    if shared := sorted({*tune.seeds} & {*final}):
        raise UserError(
            f"{source}: tune: seed {shared[0]} is one of the final runs'; tuning needs seeds of its own"
        )
    protocol = tune.model_dump(mode="json", exclude={"per_dataset"})
    known = _read(path)
    others = [name for name in known.get("chosen", {}) if name not in (methods or paper.methods)]
    if others and known.get("protocol") != protocol:
        raise UserError(
            f"{path}: {', '.join(others)} were tuned with another protocol than {source} describes now;"
            f" tune all methods again (fedbench tune {dataset} --paper {paper_key}) or remove the file"
        )
    chosen, scores, commits = dict[str, Any](), dict[str, Any](), dict[str, str]()
    for name in methods or paper.methods:
        known_rows = known.get("scores", {}).get(name, [])
        known_commits = known.get("commits", {}).get(name, "")
        judge = Scores(config, tune.metric, known_rows, known_commits, f"{dataset} {name}", say)
        trials = trials_of(paper, paper.methods[name], name)
        specs = [trial_specs(paper, dataset, name, params) for params in trials]
        runs, best = race(specs, judge.of)
        rows = [
            {**params, tune.metric: mean_score(made), "runs": made}
            for params, made in zip(trials, runs, strict=True)
        ]
        if rows[best][tune.metric] is None:
            raise UserError(f"every trial of {name} on {dataset} diverged; widen its grid in {source}")
        chosen[name], scores[name], commits[name] = trials[best], rows, " ".join(sorted(judge.commits))
    known = _read(path)  # again: another call may have ended meanwhile
    found = {"commits": commits, "chosen": chosen, "scores": scores}
    content = {"protocol": protocol} | {key: {**known.get(key, {}), **found[key]} for key in found}
    header = f"# Written by `fedbench tune {dataset} --paper {paper_key}`; the cells read `chosen`.\n"
    content["scores"] = {name: [_Line(row) for row in rows] for name, rows in content["scores"].items()}
    body = yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=160)
    files.write(path, header + body)
    return path


def _read(path: Path) -> dict[str, Any]:
    """Read a file of choices, empty where there is none yet."""
    known: dict[str, Any] = configuration.read_yaml(path) if path.exists() else {}
    for name, rows in known.get("scores", {}).items():
        for row in rows:
            if not isinstance(row.get("runs"), dict):
                raise UserError(
                    f"{path}: a trial of {name} does not give the score of each of its `runs`; remove the file to tune"
                    " again"
                )
    return known


class _Line(dict[str, Any]):
    """A trial in the file: one line, whatever it holds."""


class _Dumper(yaml.SafeDumper):
    """Knows such lines."""


_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True)
)
