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
from fedbench.configuration import Config, MethodEntry, Paper, merged
from fedbench.errors import UserError, unknown
from fedbench.runs import Record, Store
from fedbench.specs import RunSpec
from fedbench.training import train_run


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
    scale = configuration.Scale(name="tune", description="", seeds=tune.seeds, papers={})
    setting = {name: tune.setting.get(name, entry.default) for name, entry in paper.settings.items()}
    extra = {"params": params, "train": tune.train, "data": {"validation": tune.validation}}
    return [
        cells.resolve(paper, scale, dataset, setting, method, seed, extra=extra, tuned={})
        for seed in tune.seeds
    ]


def mean_score(records: Sequence[Record], metric: str) -> float | None:
    """Return the mean of a metric over a trial's runs, to five digits; None where one of them diverged."""
    scores = [record.metrics.get(metric) for record in records]
    if any(score is None for score in scores):
        return None
    return round(statistics.fmean(score for score in scores if score is not None), 5)


def tune_dataset(
    config: Config, paper_key: str, dataset: str, methods: Sequence[str] | None, say: Callable[[str], None]
) -> Path:
    """Run every trial of the methods (default: all), write the score table and the choice, and return the file.

    Trials are runs of the store: an interrupted tuning goes on where it was, and repeating one costs nothing.
    A trial's score is the mean over its seeds; one that diverges with any of them has none. Ties go to the earlier
    trial. Methods that are not named keep what was chosen for them, as long as it was chosen the same way.

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
    protocol = tune.model_dump(mode="json", exclude={"per_dataset"})
    known = configuration.read_yaml(path) if path.exists() else {}
    others = [name for name in known.get("chosen", {}) if name not in (methods or paper.methods)]
    if others and known.get("protocol") != protocol:
        raise UserError(
            f"{path}: {', '.join(others)} were tuned with another protocol than {source} describes now;"
            f" tune all methods again (fedbench tune {dataset} --paper {paper_key}) or remove the file"
        )
    chosen, scores, commits = dict[str, Any](), dict[str, Any](), dict[str, str]()
    for name in methods or paper.methods:
        rows, made = [], set[str]()
        for params in trials_of(paper, paper.methods[name], name):
            records = [train_run(spec, config, Store()) for spec in trial_specs(paper, dataset, name, params)]
            score = mean_score(records, tune.metric)
            rows.append({**params, tune.metric: score, "runs": " ".join(record.key for record in records)})
            made |= {record.provenance.get("commit", "") for record in records}
            say(f"{dataset} {name} {params}: {tune.metric} {score}")
        best = max(rows, key=lambda row: -math.inf if row[tune.metric] is None else row[tune.metric])
        if best[tune.metric] is None:
            raise UserError(f"every trial of {name} on {dataset} diverged; widen its grid in {source}")
        chosen[name] = {key: value for key, value in best.items() if key not in (tune.metric, "runs")}
        scores[name] = rows
        commits[name] = " ".join(sorted(made))
    # Again: another call may have ended meanwhile.
    known = configuration.read_yaml(path) if path.exists() else {}
    found = {"commits": commits, "chosen": chosen, "scores": scores}
    content = {"protocol": protocol} | {key: {**known.get(key, {}), **found[key]} for key in found}
    header = f"# Written by `fedbench tune {dataset} --paper {paper_key}`; the cells read `chosen`.\n"
    files.write(path, header + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110))
    return path
