"""Checks what cells ask for before the first of them trains: a misspelt option is not found after a night.

`fedbench run` and `tune` check at their start, Snakemake in a dry run and before its first job.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from fedbench import algorithms, metric_table, registry, tasks
from fedbench.data import datasets, partitions
from fedbench.data.clients import as_seen
from fedbench.data.datasets import count_sites, site_names
from fedbench.data.partitions import Pool
from fedbench.engine import references
from fedbench.engine.schedule import check_method
from fedbench.errors import ListedError, UserError, unknown
from fedbench.method import check_weights
from fedbench.net import building
from fedbench.spec import DataSpec, RunSpec, TrainSpec
from fedbench.study.cells import Cell, runs_before
from fedbench.study.configuration import load_paper, source_of, study_path
from fedbench.tasks import detailed
from fedbench.train import initial_weights

KINKED = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh)
"""Piecewise linear activations: their second derivative is 0 wherever there is one."""
LISTED = 8
"""Mistakes that are told at once."""


def check(cells: Sequence[Cell]) -> None:
    """Check hyper-parameters, task, network, normalisation and partition rule of cells and of what they start from.

    Raises:
        UserError: something is unknown, missing, of a wrong kind, or does not fit; the place in the YAML is named.
    """
    check_runs(
        (f"{source_of(cell.paper, cell.asked.get('set', {}))}: ", cell.dataset, cell.method, run)
        for cell in cells
        for run in (*runs_before(cell)[:1], cell.runs[0])
    )


def check_tables(cells: Sequence[Cell]) -> None:
    """Check the metrics of tables and figures that have cells of all their datasets and methods among these.

    Raises:
        UserError: none of the cells measures one, or no dataset has the site that it asks for.
    """
    papers = dict.fromkeys(cell.paper for cell in cells)
    _refuse(mistake for paper in papers for mistake in _lost_metrics(paper, cells))


def check_runs(runs: Iterable[tuple[str, str, str, RunSpec]]) -> None:
    """Likewise for runs: (source, label of the dataset, label of the method, run)."""
    _refuse(mistake for run in runs for mistake in _mistakes(*run))


def _lost_metrics(paper: str, cells: Sequence[Cell]) -> Iterator[str]:
    """Name the metrics of a paper's tables and figures, and the sites that they ask for, which no cell has."""
    runs = {(cell.dataset, cell.method): cell.runs[0] for cell in cells if cell.paper == paper}
    datasets_run, methods_run = {dataset for dataset, _ in runs}, {method for _, method in runs}
    for name, spec in load_paper(paper).targets.items():
        if {*spec.datasets} <= datasets_run and {*spec.methods} <= methods_run:
            places = itertools.product(spec.datasets, spec.methods)
            shown = [runs[place] for place in places if place in runs]
            for mistake in (*_unmeasured(shown, spec.metrics), *_lost_sites(shown, spec.metrics)):
                yield f"{study_path(paper)}: {name}: metrics: {mistake}"


def _unmeasured(runs: Sequence[RunSpec], metrics: Sequence[str]) -> Iterator[str]:
    """Say which metrics none of the runs has; budgets and a method's own points are known when they run."""
    for metric in metrics:
        if metric in metric_table.known(None) and runs and all(lacks(run, metric) for run in runs):
            yield lacks(runs[0], metric)


def _lost_sites(runs: Sequence[RunSpec], metrics: Sequence[str]) -> Iterator[str]:
    """Say which sites metrics ask for (``test_auc@Basel``) that no dataset has; nothing before all are known."""
    asked = {metric.partition("@")[2] for metric in metrics} - {""}
    known = [site_names(run.data.datasets) for run in runs] if asked else []
    sites = {*itertools.chain(*filter(None, known))}
    for site in sorted(asked - sites) if sites and None not in known else ():
        yield str(unknown("site", site, sites))


def _refuse(mistakes: Iterable[str]) -> None:
    listed = list(dict.fromkeys(mistakes))
    if listed:
        more = [f"... and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
        raise ListedError("\n  ".join([*listed[:LISTED], *more]))


def _mistakes(source: str, dataset: str, method: str, run: RunSpec) -> Iterator[str]:
    """Say what is wrong with a run and where it is written."""
    checks: list[tuple[str, Callable[[], Any]]] = [
        (f"datasets.{dataset}.data", lambda: [_known(name) for name in run.data.datasets]),
        (f"methods.{method}", lambda: algorithms.make_method(run.method, run.params)),
        (f"datasets.{dataset}: task", lambda: tasks.make_task(run.task)),
        (f"datasets.{dataset}.network", lambda: _check_network(run)),
        (f"datasets.{dataset}.data.partition", lambda: _check_partition(run.data.canonical)),
        (f"datasets.{dataset}", lambda: as_seen(facts(run.data.dataset)[0], run.train)),
        (f"datasets.{dataset}: train.iterations", lambda: _check_length(run.train)),
    ]
    said = set[str]()
    for place, build in checks:
        try:
            build()
        except UserError as error:
            if str(error) not in said:  # a file that cannot be read is a mistake of one place
                yield f"{source}{place}: {error}"
            said.add(str(error))
    if not said:
        try:
            if shape := facts(run.data.dataset)[0]:
                initial_weights.check_start(run, shape)
        except UserError as error:
            yield f"{source}start of methods.{method} on datasets.{dataset}: {error}"
        try:
            built = algorithms.make_method(run.method, run.params)
            tasks.check_fit(built, tasks.make_task(run.task), run.method, run.task)
            check_method(built, run.method, run.train.participation)
            check_weights(built, run.method, run.train.weights)
            if run.train.reference is not None:
                references.check_reference(run)
            _check_smooth(built.needs_smooth(), run)
            if built.binary and (n_classes := classes_of(run)) not in (None, 2):
                raise UserError(
                    f"method {run.method!r} is for two classes, and {run.data.dataset!r} has {n_classes}: say which "
                    "are positive, with `positive:` in the dataset's YAML or data.labels.rule named or halves"
                )
        except UserError as error:
            yield f"{source}methods.{method} on datasets.{dataset}: {error}"


@functools.lru_cache(maxsize=64)
def _facts(name: str, definition: str) -> tuple[tuple[int, ...], int]:
    """Return the shape of a sample and the number of classes; 0 where it is not known before the dataset is prepared.

    A file of the user's own is read once for it, until its definition changes: that takes seconds, and what shows too
    late costs a night.
    """
    return datasets.get(name).facts()


def _known(dataset: str) -> tuple[tuple[int, ...], int]:
    """Return what :func:`facts` does; UserError for an unknown name or a file that is not what it should be."""
    return _facts(dataset, datasets.get(dataset).definition())


def facts(dataset: str) -> tuple[tuple[int, ...], int]:
    """Return the shape of a sample and the number of classes of a dataset, empty and 0 where they are not known."""
    try:
        return _known(dataset)
    except UserError:
        return (), 0  # said of the data


def classes_of(run: RunSpec) -> int | None:
    """Return how many classes the labels of a run have, None before it is known."""
    return 2 if run.data.labels.rule != "original" else facts(run.data.dataset)[1] or None


def lacks(run: RunSpec, metric: str) -> str:
    """Say why a run will not have a metric that validation chooses by; empty if it will, or nothing says so yet."""
    part, _, name = metric.partition("_")
    if part == "val" and not run.data.held_out:
        return f"{metric} needs a validation part: give data.validation"
    if part not in ("val", "test") or (n_classes := classes_of(run)) is None:
        return ""
    measured = tasks.make_task(run.task).measured(n_classes, run.train)
    if name.partition("@")[0].removesuffix("_h") in measured:
        return ""
    label = run.task.name if run.task else tasks.DEFAULT
    has = ", ".join(f"{part}_{name}" for name in measured)
    options = f"{{metrics: [{name}]}}"
    cure = f"; write `task: {{name: detailed, options: {options}}}`" if name in detailed.NAMES else ""
    return f"{metric} is not measured with {n_classes} classes: task {label!r} measures {has}{cure}"


def _check_network(run: RunSpec) -> None:
    """Build a network without memory for its weights, for samples of the dataset's shape where that is known."""
    network, module = run.network, _network(run)
    parts = module.named_parameters()
    empty = [name for name, weights in parts if not (nn.parameter.is_lazy(weights) or weights.numel())]
    if empty:
        raise UserError(f"network {network.name!r}: its layer {empty[0]} is empty: a width is 0")


def _network(run: RunSpec) -> nn.Module:
    """Build a run's network on no device; an empty one where the shape of a sample is not known yet."""
    name, options = run.network.name, run.network.options
    build = building.builder(name, options)
    shape, _ = facts(run.data.dataset)
    try:
        seen = as_seen(shape, run.train)
    except UserError:  # said of train.normalize
        seen = ()
    return _built(build, name, json.dumps(options), seen) if seen else nn.Module()


@functools.lru_cache(maxsize=64)
def _built(build: building.Builder, name: str, options: str, shape: tuple[int, ...]) -> nn.Module:
    """Build a network once for all runs that have it: the large ones take half a second."""
    with torch.device("meta"), warnings.catch_warnings(action="ignore"):
        return building.built(build, name, shape, 1, json.loads(options))


def _check_smooth(asks: str, run: RunSpec) -> None:
    """Refuse a piecewise linear network where ``asks`` names what takes a second derivative."""
    if asks and (kinks := [part for part in _network(run).modules() if isinstance(part, KINKED)]):
        raise UserError(
            f"{asks} takes a smooth network, and {run.network.name!r} has {type(kinks[0]).__name__}: differences of "
            "gradients across its kinks are not second derivatives; take activation: tanh, or another hvp"
        )


def _check_length(train: TrainSpec) -> None:
    """Refuse a run that ends before its first communication."""
    if train.iterations is not None and train.period is not None and train.iterations < train.period:
        raise UserError(f"{train.iterations} is less than a round (train.period: {train.period})")


@functools.lru_cache(maxsize=256)
def _check_partition(data_rule: str) -> None:
    """Let one of our own rules deal made-up samples that it has every fact of: it complains if options are missing.

    Once for all runs of the same data, given as JSON: among a hundred clients it may take a tenth of a second.
    """
    data = DataSpec.model_validate_json(data_rule)
    rule = registry.find(partitions, "partition rule", data.partition.rule, "partition")
    if data.partition.rule in registry.origins(partitions):
        return
    # a positive and a negative class of every client, which is a group
    of_client = 2 * max(2, data.partition.least)
    client = np.repeat(np.arange(data.clients), of_client)
    labels = np.arange(len(client)) % 2
    sites: np.ndarray | None = client
    with contextlib.suppress(UserError):  # what cannot be read is said of the data
        known = site_names(data.datasets)
        owned = np.arange(len(client)) % count_sites(data.datasets) if known else None
        sites = client if known is None else owned
    pool = Pool(labels, client + data.clients * (1 - labels), client, sites)
    rule(pool, data.partition, data.clients, np.random.default_rng(0))
