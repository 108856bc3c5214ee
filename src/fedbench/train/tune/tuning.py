"""Choosing hyper-parameters: the same number of trials and iterations for every method, validation score only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fedbench.errors import UserError, unknown
from fedbench.spec import RunSpec
from fedbench.store import code
from fedbench.store.cell_files import by_other_code
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.schema import Config, Paper, Value
from fedbench.study.tuned import edges, tuned_path
from fedbench.train import gpus, preflight
from fedbench.train.tune.choices import Choice, Choices
from fedbench.train.tune.trials import Rule, Standing, Trial, race, trial_specs, trials_of, tunable
from fedbench.train.workers import Workers, workers


def tune_dataset(
    config: Config,
    paper_key: str,
    dataset: str,
    methods: Sequence[str] | None,
    say: Callable[[str], None],
    cores: int = 1,
) -> list[Path]:
    """Tune on a dataset, apart for each value of the setting in ``tune.each``, and return the files.

    ``cores`` runs are trained at a time, those of several methods too; on a GPU one.

    Raises:
        UserError: a name is unknown, there is nothing to try, or all trials of a method diverged.
    """
    paper = configuration.load_paper(paper_key)
    if paper.tune is None:
        raise UserError(
            f"{configuration.study_path(paper_key)} has no section `tune`, so there is nothing to try"
        )
    if dataset not in paper.datasets:
        raise unknown(f"dataset of {paper.key}", dataset, paper.datasets)
    for name in methods or []:
        if name not in paper.methods:
            raise unknown(f"method of {paper.key}", name, paper.methods)
    with workers(1 if gpus.wanted(config.device) else cores) as pool:
        points = paper.tune.points()
        return [Tuning(config, paper, dataset, values, say).run(methods, pool) for values in points]


class Tuning:
    """The tuning on a dataset at one of ``tune.points()``, whose choices go to one file.

    Trials are runs of the store: an interrupted tuning goes on where it was. A run whose score the file has already is
    not made again, wherever its store is, unless the file records other code than today's: forget the runs that other
    code made and remove the file to tune from nothing. A trial with a failed run, a short one too, has no score.
    Methods that are not named keep what was chosen for them; where that was by another protocol, the file stays as it
    is until one call tunes all of them.
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
        self._source = configuration.study_path(paper.key)
        self._path = tuned_path(paper, dataset, values)
        at_values = paper.tune.at(values)
        self._paper, self._tune = paper.model_copy(update={"tune": at_values}), at_values.on(dataset)
        protocol = self._tune.protocol() | ({"set": dict(config.set)} if config.set else {})
        header = f"# Written by `fedbench tune {dataset} --paper {paper.key}`; the cells read `chosen`.\n"
        self._choices = Choices(self._path, header, protocol, paper.methods)
        # by the keys of runs: scores, and commits and code that made them
        self._scores, self._made = dict[str, float | None](), dict[str, tuple[str, str]]()

    def run(self, methods: Sequence[str] | None, pool: Workers) -> Path:
        """Run every trial of the methods (default: all), write the scores and the choices, and return the file.

        Methods without cells at this value are left out.
        """
        at = {"dataset": self._dataset, **self._values}
        tuned = tunable(self._paper, methods, at, self._source, self._say)
        self._check_seeds()
        trials = {name: self._trials(name) for name in tuned}
        self._check(trials)
        rule = self._rule(trials)
        self._take_known(trials)
        chosen = dict[str, Choice]()
        for name, standing in self._race(trials, rule, pool):
            runs, best = standing.runs, standing.best
            if rule.mean(runs[best]) is None:
                short = "" if rule.reach is None else f" or missed the `reach` of {rule.reach:g}"
                raise UserError(
                    f"every trial of {name} on {self._dataset} diverged{short}; widen its grid in {self._source}"
                )
            self._say(f"{self._dataset} {name}: {_choice(trials[name], standing, rule)}")
            made_at, made_by = zip(*(self._made[key] for made in runs for key in made), strict=True)
            commits = " ".join(sorted({*" ".join(made_at).split()}))
            # shipped scores, of no known code, stay
            codes = " ".join(sorted({*made_by})) if all(made_by) else ""
            rows = [rule.row(trial.params, made) for trial, made in zip(trials[name], runs, strict=True)]
            chosen[name] = Choice(commits, codes, trials[name][best].params, rows)
            self._choices.write(chosen)
        if tuned:
            self._tell_waiting(tuned)
        return self._path

    def _take_known(self, trials: Mapping[str, Sequence[Trial]]) -> None:
        """Take the scores that the file has of runs of these trials; say which of them, and of the store's, are old."""
        known, store = self._choices.scores(), Store()
        by_name = {name: [run for trial in tried for run in trial.runs] for name, tried in trials.items()}
        other = dict[str, None]()
        for name, runs in by_name.items():
            for run in runs:
                if run.key not in known:
                    continue
                score, commits, made_by = known[run.key]
                if code.differs(run, made_by or None):
                    other[name] = None
                else:
                    self._scores[run.key], self._made[run.key] = score, (commits, made_by)
        if other:
            self._say(
                f"note: other code made the scores of {', '.join(other)} in {self._path}: runs that the store lacks "
                "are made again"
            )
        if line := code.remark(
            {name: [by_other_code(run, store) for run in runs] for name, runs in by_name.items()}
        ):
            self._say(line)

    def _race(
        self, trials: Mapping[str, Sequence[Trial]], rule: Rule, pool: Workers
    ) -> Iterator[tuple[str, Standing]]:
        """Race the trials of several methods, the first methods' runs first; yield how each race ended."""
        racing, begun = [*trials], set[str]()
        while True:
            wanted = dict[str, tuple[str, RunSpec]]()
            for name in [*racing]:
                standing = race(trials[name], rule, self._scores)
                for run in standing.next:
                    wanted.setdefault(run.key, (name, run))
                if not standing.next:
                    racing.remove(name)
                    yield name, standing
            if not wanted:
                return
            for key, (_, run) in wanted.items():
                if pool.free and key not in begun:
                    pool.begin(run, self._config)
                    begun.add(key)
            for run, ended in pool.finished():
                (name, _), record = wanted[run.key], ended.result()
                self._scores[run.key] = self._score(name, record, rule.metric_of(run.key))
                self._made[run.key] = record.provenance.get("commit", ""), record.provenance.get("code", "")
                self._tell(name, trials[name], rule, run)

    def _tell(self, method: str, trials: Sequence[Trial], rule: Rule, run: RunSpec) -> None:
        """Say the score of a run, and what its trial tries."""
        score = self._scores[run.key]
        number, params = next((n, trial.params) for n, trial in enumerate(trials, 1) if run in trial.runs)
        short = ", short" if run.key in rule.short else ""
        shown = "diverged" if score is None else f"{rule.metric_of(run.key)} {score}"
        self._say(
            f"{self._path.stem} {method}, trial {number} of {len(trials)}, seed {run.seed}{short}: {shown}"
            f"  {params}"
        )

    def _score(self, method: str, record: Record, metric: str) -> float | None:
        """Return the score of a run to five digits, None where it diverged."""
        if record.status == "diverged":
            return None
        if (value := record.metrics.get(metric)) is None:
            raise UserError(
                f"{self._path.stem} {method}: {metric} is undefined: the validation part lacks samples of a class;"
                " hold out more (`validation` in the section `tune`), or take another metric"
            )
        return round(value, 5)

    def _trials(self, method: str) -> list[Trial]:
        params = trials_of(self._paper, self._paper.methods[method], method)[: self._tune.trials]
        given = self._config.set
        return [Trial(each, trial_specs(self._paper, self._dataset, method, each, given)) for each in params]

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
        short, source = len(self._tune.seeds), configuration.source_of(self._paper.key, self._config.set)
        preflight.check_runs(
            (f"{source}: ", self._dataset, name, run)
            for name, tried in trials.items()
            for trial in tried
            for run in (trial.runs[0], *trial.runs[short : short + 1])  # the others differ in their seed
        )
        asked = (("tune.metric", self._tune.metric), ("tune.stable.metric", self._tune.short_metric))
        for tried in trials.values():
            for place, metric in asked:
                if why := preflight.lacks(tried[0].runs[0], metric):
                    raise UserError(f"{self._source}: {place} on {self._dataset}: {why}")

    def _rule(self, trials: Mapping[str, Sequence[Trial]]) -> Rule:
        tune = self._tune
        tried = [trial for of_method in trials.values() for trial in of_method]
        return Rule(
            metric=tune.metric,
            sign=self._paper.measure(tune.metric).sign,
            short=frozenset(run.key for trial in tried for run in trial.runs[len(tune.seeds) :]),
            reach=tune.stable.reach if tune.stable is not None else None,
            short_metric=tune.short_metric,
            short_sign=self._paper.measure(tune.short_metric).sign,
        )

    def _tell_waiting(self, tuned: Sequence[str]) -> None:
        """Say which other methods have to be tuned too before the file is replaced."""
        if not (waiting := self._choices.waiting(tuned)):
            return
        command = f"fedbench tune {self._dataset} {' '.join([*tuned, *waiting])} --paper {self._paper.key}"
        again = ", with the same --set" if self._config.set else ""
        self._say(
            f"{self._path} stays as it is: {', '.join(waiting)} were tuned with another protocol. Tune all in one call "
            f"({command}{again}), which trains no run again, or remove the file"
        )


def _choice(trials: Sequence[Trial], standing: Standing, rule: Rule) -> str:
    """Say what was chosen, and which of it lies at the boundary of the grid."""
    runs, values = standing.runs[standing.best], trials[standing.best].params
    seeds = len(runs.keys() - rule.short)
    text = f"chosen {values}, {rule.metric} {rule.mean(runs)} over {seeds} seed{'s' * (seeds > 1)}"
    for name in edges(values, [trial.params for trial in trials]):
        text += f"; {name} is at the boundary of the grid: widen it there"
    return text
