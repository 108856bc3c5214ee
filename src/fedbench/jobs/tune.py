"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fedbench import files, seal
from fedbench.errors import UserError, unknown
from fedbench.jobs import metric_checks, preflight
from fedbench.jobs.training import train_run
from fedbench.plan import cells, configuration
from fedbench.plan.extend import overlaid
from fedbench.plan.layers import overrides
from fedbench.plan.schema import Config, FigureSpec, MethodEntry, Paper, Scale, TableSpec, Value
from fedbench.reading import parse_yaml
from fedbench.specs import RunSpec
from fedbench.store.runs import Record, Store

Runs = dict[str, float | None]
"""Scores of a trial's runs by their keys in the store, None where one diverged."""


def trials_of(paper: Paper, method: MethodEntry, name: str) -> list[dict[str, Any]]:
    """List the combinations a method tries: its whole grid, which must have exactly ``paper.tune.trials`` of them."""
    assert paper.tune is not None
    options = [
        [_pairs(names.split(", "), value) for value in values] for names, values in method.grid.items()
    ]
    trials = [
        {key: value for part in chosen for key, value in part.items()}
        for chosen in itertools.product(*options)
    ]
    if len(trials) != paper.tune.trials:
        raise UserError(
            f"{paper.key}: the grid of {name} has {len(trials)} combinations,"
            f" but every method gets {paper.tune.trials}"
        )
    return trials


def _pairs(names: list[str], value: Any) -> dict[str, Any]:
    """Give each of several names its part of a list; one name takes the value as it is."""
    return dict(zip(names, value if len(names) > 1 else [value], strict=True))


def trial_specs(
    paper: Paper, dataset: str, method: str, params: dict[str, Any], given: Mapping[str, Any] | None = None
) -> list[RunSpec]:
    """Resolve the runs of one trial, one for each seed: the paper's setting with training data held out.

    ``given`` is what the call sets in all runs, over ``params`` too.
    """
    assert paper.tune is not None
    tune = paper.tune.on(dataset)
    scale = Scale(name="tune", description="", seeds=tune.seeds, papers={})
    setting = {name: tune.setting.get(name, entry.default) for name, entry in paper.settings.items()}
    for name, values in paper.methods[method].only.items():
        if name in setting and setting[name] not in values:
            setting[name] = values[0]  # it has no cell where the others are tuned
    held_out = {} if tune.validation is None else {"data": {"validation": tune.validation}}
    extra = overlaid({"train": tune.train, **held_out}, cells.piece_of(params))
    extra = overlaid(extra, overrides(given or {}))
    runs = [
        cells.resolve(paper, scale, dataset, setting, method, seed, extra=extra, tuned={})
        for seed in tune.seeds
    ]
    if not runs[0].data.validation:
        raise UserError(
            f"{paper.key}: nothing of {dataset} is held out to tune on; give `validation` in the section `tune`"
        )
    return runs


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
    trials: Sequence[Sequence[RunSpec]], score: Callable[[RunSpec], float | None], sign: int = 1
) -> tuple[list[Runs], int]:
    """Run the trials of one method, each a list of runs that differ in their seed, and find the best.

    All run with the first seed; those that lead, ties together, with the next one. A trial goes on as long as it is not
    behind the leader both on the seeds they have in common and in the mean of its own; the race ends when the leader
    has all seeds and the others are. Ties go to the earlier trial. With ``sign`` -1 the lowest score is the best.

    Returns:
        The scores of each trial's runs by their keys, and the place of the best trial.
    """
    runs: list[Runs] = [{specs[0].key: score(specs[0])} for specs in trials]

    def mean(place: int, seeds: int | None = None) -> float:
        found = mean_score(dict(itertools.islice(runs[place].items(), seeds)))
        return -math.inf if found is None else sign * found

    while True:
        most = max(map(len, runs))
        level = [place for place in range(len(trials)) if len(runs[place]) == most]
        ahead = max(level, key=mean)
        rivals = [
            place
            for place in range(len(trials))
            if len(runs[place]) < most
            and mean(place) > -math.inf
            and (mean(place) >= mean(ahead) or mean(place) >= mean(ahead, len(runs[place])))
        ]
        if not rivals and (mean(ahead) == -math.inf or most == len(trials[ahead])):
            return runs, ahead
        best = max(map(mean, rivals or [ahead]))
        for place in rivals or level:
            if mean(place) == best:
                spec = trials[place][len(runs[place])]
                runs[place][spec.key] = score(spec)


def margin(runs: Sequence[Runs], best: int, sign: int = 1) -> tuple[int, float, int] | None:
    """Return the trial that comes closest to the best: its place, by how much it is behind, and on how many seeds.

    The seeds are those that both have; None where no other trial has a score.
    """
    found = []
    for place, made in enumerate(runs):
        shared = min(len(made), len(runs[best]))
        means = [mean_score(dict(itertools.islice(runs[p].items(), shared))) for p in (best, place)]
        if place != best and means[0] is not None and means[1] is not None:
            found.append((place, round(sign * (means[0] - means[1]), 5), shared))
    return min(found, key=lambda item: item[1], default=None)


def mean_score(runs: Runs) -> float | None:
    """Return the mean score of a trial's runs, to five digits; None where one of them diverged."""
    scores = [score for score in runs.values() if score is not None]
    return round(statistics.fmean(scores), 5) if len(scores) == len(runs) else None


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
    here = _tunable(paper, methods, {"dataset": dataset, **values}, source, say)
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
    known = _read(path)
    others = [name for name in known.get("chosen", {}) if name not in here]
    if others and known.get("protocol") != protocol:
        raise UserError(
            f"{path}: {', '.join(others)} were tuned with another protocol than {source} describes now;"
            f" tune all methods again (fedbench tune {dataset} --paper {paper.key}) or remove the file"
        )
    chosen, scores, commits = dict[str, Any](), dict[str, Any](), dict[str, str]()
    grids = {name: trials_of(paper, paper.methods[name], name) for name in here}
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
    known = _read(path)  # again: another call may have ended meanwhile
    found = {"commits": commits, "chosen": chosen, "scores": scores}
    content = {"protocol": protocol} | {key: {**known.get(key, {}), **found[key]} for key in found}
    header = f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n"
    content["scores"] = {name: [_Line(row) for row in rows] for name, rows in content["scores"].items()}
    body = yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=160)
    files.write(path, header + sealed(body))
    return path


def _tunable(
    paper: Paper,
    methods: Sequence[str] | None,
    at: Mapping[str, Value],
    source: Path,
    say: Callable[[str], None],
) -> list[str]:
    """List the methods to tune at a dataset and settings. Of those nobody named, the ones without a grid are left out.

    Raises:
        UserError: there is none left, or one that was named has no grid.
    """
    here = [name for name in methods or _with_cells(paper, str(at["dataset"])) if paper.methods[name].has(at)]
    fixed = [name for name in here if not paper.methods[name].grid]
    if fixed and methods:
        raise UserError(f"{source}: methods.{fixed[0]} has no grid: there is nothing to try")
    if fixed:
        say(f"not tuned, as {source} gives no grid: {', '.join(fixed)}")
    if here and len(fixed) == len(here):
        raise UserError(f"{source}: no method has a grid: there is nothing to try")
    return [name for name in here if name not in fixed]


def _choice(
    whose: str, metric: str, trials: Sequence[dict[str, Any]], runs: Sequence[Runs], best: int, sign: int
) -> str:
    """Say what was chosen, and how far ahead it is."""
    count = len(runs[best])
    text = f"{whose}: chosen {trials[best]}, {metric} {mean_score(runs[best])} over {count} seed{'s' * (count > 1)}"
    if (closest := margin(runs, best, sign)) is None:
        return f"{text}; no other trial has a score"
    place, behind, seeds = closest
    return f"{text}; {trials[place]} is {behind:.5f} behind on the {seeds} seed{'s' * (seeds > 1)} they share"


def _with_cells(paper: Paper, dataset: str) -> list[str]:
    """List the methods that a table or figure shows on a dataset; all where none does."""
    ours = not paper.datasets[dataset].printed

    def stands_in(spec: TableSpec | FigureSpec) -> bool:
        added = spec.additions if isinstance(spec, TableSpec) else []
        return dataset in spec.datasets or (ours if added is None else dataset in added)

    specs: list[TableSpec | FigureSpec] = [*paper.tables.values(), *paper.figures.values()]
    shown = {name for spec in specs if stands_in(spec) for name in spec.methods}
    return [name for name in paper.methods if name in (shown or paper.methods)]


def _read(path: Path) -> dict[str, Any]:
    """Read a file of choices, empty where there is none yet."""
    known = configuration.read_tuned(path) if path.exists() else {}
    for name, rows in known.get("scores", {}).items():
        for row in rows:
            if not isinstance(row.get("runs"), dict):
                raise UserError(
                    f"{path}: a trial of {name} does not give the score of each of its `runs`; remove the file to tune"
                    " again"
                )
    return known


def sealed(body: str) -> str:
    """Put the checksum of what a YAML text holds in its first line."""
    return f"checksum: {seal.checksum(parse_yaml(body))}\n{body}"


class _Line(dict[str, Any]):
    """A trial in the file: one line, whatever it holds."""


class _Dumper(yaml.SafeDumper):
    """Knows such lines, and writes a list that several trials share out each time."""

    def ignore_aliases(self, data: Any) -> bool:
        """Say that nothing is written as a reference to something above."""
        return True


_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True)
)
