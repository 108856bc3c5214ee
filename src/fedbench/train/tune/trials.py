"""What tuning tries: methods, combinations, the runs of each; and the race of a method's trials over seeds."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study import cells
from fedbench.study.layers import overlaid, overrides
from fedbench.study.schema import FigureSpec, MethodEntry, Paper, Scale, TableSpec, Value


def tunable(
    paper: Paper,
    methods: Sequence[str] | None,
    at: Mapping[str, Value],
    source: Path,
    say: Callable[[str], None],
) -> list[str]:
    """List the methods to tune at a dataset and settings. Without names, methods that have no grid are left out.

    Raises:
        UserError: there is none left, or one that was named has no grid.
    """
    asked = [
        name for name in methods or _with_cells(paper, str(at["dataset"])) if paper.methods[name].has(at)
    ]
    fixed = [name for name in asked if not paper.methods[name].grid]
    if fixed and methods:
        raise UserError(f"{source}: methods.{fixed[0]} has no grid: there is nothing to try")
    if fixed:
        say(f"not tuned, as {source} gives no grid: {', '.join(fixed)}")
    if asked and len(fixed) == len(asked):
        raise UserError(f"{source}: no method has a grid: there is nothing to try")
    return [name for name in asked if name not in fixed]


def _with_cells(paper: Paper, dataset: str) -> list[str]:
    """List the methods that a table or figure shows on a dataset; all where none does."""
    ours = not paper.datasets[dataset].printed

    def stands_in(spec: TableSpec | FigureSpec) -> bool:
        added = spec.additions if isinstance(spec, TableSpec) else []
        return dataset in spec.datasets or (ours if added is None else dataset in added)

    shown = {name for spec in paper.targets.values() if stands_in(spec) for name in spec.methods}
    return [name for name in paper.methods if name in (shown or paper.methods)]


def trials_of(paper: Paper, method: MethodEntry, name: str) -> list[dict[str, Any]]:
    """List the combinations a method tries: its grid, which must have exactly ``paper.tune.trials`` of them."""
    assert paper.tune is not None
    grid = [(names.split(", "), values) for names, values in method.grid.items()]
    options = [
        [dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in values]
        for names, values in grid
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


def trial_specs(
    paper: Paper, dataset: str, method: str, params: dict[str, Any], given: Mapping[str, Any] | None = None
) -> list[RunSpec]:
    """Resolve the runs of one trial: the paper's setting with training data held out, one for each seed.

    First those whose score counts, then the short ones (:class:`~fedbench.study.tuning.StableSpec`). ``given`` is
    what the call sets in all runs, over ``params`` too.
    """
    assert paper.tune is not None
    tune = paper.tune.on(dataset)
    scale = Scale(name="tune", description="", seeds=tune.seeds, papers={})
    held_out = {} if tune.validation is None else {"data": {"validation": tune.validation}}
    extra = overlaid({"train": tune.train, **held_out}, cells.piece_of(params))
    given = overrides(given or {})

    def run(seed: int, setting: Mapping[str, Value], train: Mapping[str, Any]) -> RunSpec:
        changes = overlaid(overlaid(extra, {"train": train}), given)
        at = _setting(paper, method, setting)
        return cells.resolve(paper, scale, dataset, at, method, changes, tuned={}).seeded(seed)

    runs = [run(seed, tune.setting, {}) for seed in tune.seeds]
    if tune.stable is not None:
        setting = {**tune.setting, **tune.stable.setting}
        runs += [run(seed, setting, tune.stable.train) for seed in tune.stable.seeds]
    if not runs[0].data.validation:
        raise UserError(
            f"{paper.key}: nothing of {dataset} is held out to tune on; give `validation` in the section `tune`"
        )
    return runs


def _setting(paper: Paper, method: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Complete the values of a trial's settings; where the method has no cell there, it is tuned at its own first."""
    setting = {name: values.get(name, entry.default) for name, entry in paper.settings.items()}
    for name, allowed in paper.methods[method].only.items():
        if name in setting and setting[name] not in allowed:
            setting[name] = allowed[0]
    return setting


Runs = Mapping[str, float | None]
"""Scores of runs by their keys in the store, None where one diverged."""


class Trial(NamedTuple):
    """The values that a trial tries, and its runs, which differ in their seed; the short ones come last."""

    params: dict[str, Any]
    runs: list[RunSpec]


class Standing(NamedTuple):
    """Where a race is: the scores of each trial's runs, the place of the leader, and the runs that come next.

    The race has ended when none does.
    """

    runs: list[Runs]
    best: int
    next: list[RunSpec]


@dataclass(frozen=True)
class Rule:
    """How the runs of a trial are judged.

    Attributes:
        metric: the validation metric.
        sign: -1 where the lowest score is the best.
        short: keys of the runs that a trial must survive; their scores count in no mean.
        reach: what each of these must score.
        short_metric: their metric.
        short_sign: -1 where their lowest score is the best.
    """

    metric: str
    sign: int
    short: frozenset[str]
    reach: float | None
    short_metric: str
    short_sign: int

    def metric_of(self, key: str) -> str:
        """Return the metric that judges a run."""
        return self.short_metric if key in self.short else self.metric

    def mean(self, runs: Runs, seeds: int | None = None) -> float | None:
        """Return the mean score of the first ``seeds`` runs, to five digits; None where any run of all failed."""
        if any(self._failed(key, score) for key, score in runs.items()):
            return None
        scores = [score for key, score in runs.items() if key not in self.short and score is not None]
        return round(statistics.fmean(scores[:seeds]), 5) if scores else None

    def _failed(self, key: str, score: float | None) -> bool:
        if score is None:
            return True
        return self.reach is not None and key in self.short and self.short_sign * (score - self.reach) < 0

    def row(self, params: Mapping[str, Any], runs: Runs) -> dict[str, Any]:
        """Return what the file of choices has of a trial: its values, the mean score, the scores of its runs."""
        scores = {key: score for key, score in runs.items() if key not in self.short}
        short = {key: score for key, score in runs.items() if key in self.short}
        return {**params, self.metric: self.mean(runs), "runs": scores} | ({"short": short} if short else {})


def race(trials: Sequence[Trial], rule: Rule, scores: Runs) -> Standing:
    """Race the trials of one method as far as the scores of their runs are known.

    All run with the first seed; those that lead, ties together, with the next one. A trial goes on as long as it is not
    behind the leader both on the seeds they have in common and in the mean of its own; the race ends when the leader
    has all seeds and the others are. The short runs are made at once by who leads with all seeds. A trial with a failed
    run is out. Ties go to the earlier trial.
    """
    begun, best = [trial.runs[:1] for trial in trials], 0
    while True:
        missing = [run for made in begun for run in made if run.key not in scores]
        runs: list[Runs] = [{run.key: scores[run.key] for run in made if run.key in scores} for made in begun]
        if missing:
            return Standing(runs, best, missing)
        best, places = _leaders(trials, runs, rule)
        if not places:
            return Standing(runs, best, [])
        for place in places:
            left = trials[place].runs[len(begun[place]) :]
            begun[place] += left if left[0].key in rule.short else left[:1]


def _leaders(trials: Sequence[Trial], runs: Sequence[Runs], rule: Rule) -> tuple[int, list[int]]:
    """Return the place of the trial that leads, and those of the trials that make another run; none ends the race."""

    def mean(place: int, seeds: int | None = None) -> float:
        value = rule.mean(runs[place], seeds)
        return -math.inf if value is None else rule.sign * value

    made = [*map(len, runs)]
    level = [place for place in range(len(trials)) if made[place] == max(made)]
    best = max(level, key=mean)
    chasing = [
        place
        for place in range(len(trials))
        if place not in level
        and mean(place) > -math.inf
        and (mean(place) >= mean(best) or mean(place) >= mean(best, made[place]))
    ]
    if not chasing and (mean(best) == -math.inf or made[best] == len(trials[best].runs)):
        return best, []
    lead = max(map(mean, chasing or [best]))
    return best, [place for place in chasing or level if mean(place) == lead]
