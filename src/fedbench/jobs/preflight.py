"""Checks what cells ask for before the first of them trains: a misspelt option is not found after a night.

The dry run stays without PyTorch: `fedbench run` and `tune` check at their start, Snakemake when it starts for real.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from fedbench import algorithms, models, registry, tasks
from fedbench.data import datasets, partitions
from fedbench.data.clients import as_seen
from fedbench.data.partitions import Pool
from fedbench.engine.participation import check_method
from fedbench.errors import UserError
from fedbench.jobs import starts
from fedbench.plan.cells import Cell
from fedbench.plan.starts import runs_before
from fedbench.specs import DataSpec, RunSpec

LISTED = 8
"""Mistakes that are told at once."""


def check(cells: Iterable[Cell]) -> None:
    """Check the hyper-parameters, task, network and partition rule of all cells, and of what they start from.

    Raises:
        UserError: something is unknown, missing, of a wrong kind, or does not fit; the place in the YAML is named.
    """
    runs = [
        (f"config/papers/{cell.paper}.yaml: ", cell.dataset, cell.method, run)
        for cell in cells
        for run in (*runs_before(cell)[:1], cell.runs[0])
    ]
    check_runs(runs)


def check_runs(runs: Iterable[tuple[str, str, str, RunSpec]]) -> None:
    """Likewise for runs: (source, label of the dataset, label of the method, run)."""
    found = list(dict.fromkeys(mistake for run in _alike_once(runs) for mistake in _mistakes(*run)))
    if found:
        more = [f"... and {len(found) - LISTED} more"] if len(found) > LISTED else []
        raise UserError("\n  ".join([*found[:LISTED], *more]))


def _alike_once(runs: Iterable[tuple[str, str, str, RunSpec]]) -> Iterator[tuple[str, str, str, RunSpec]]:
    """Leave out runs that differ from one before in nothing that is checked."""
    seen = set[str]()
    for source, dataset, method, run in runs:
        facts = run.model_dump(mode="json", include={"method", "params", "task", "network", "start"})
        facts["normalize"] = run.train.normalize and run.train.normalize.model_dump()
        facts["participation"] = run.train.participation.model_dump()
        data = run.data.model_dump(mode="json", include={"dataset", "partition", "clients"})
        key = json.dumps([source, dataset, method, facts, data], sort_keys=True)
        if key not in seen:
            seen.add(key)
            yield source, dataset, method, run


def _mistakes(source: str, dataset: str, method: str, run: RunSpec) -> Iterator[str]:
    """Say what is wrong with a run and where it is written."""
    checks: list[tuple[str, Callable[[], Any]]] = [
        (f"methods.{method}", lambda: algorithms.make(run.method, run.params)),
        (f"datasets.{dataset}: task", lambda: tasks.make(run.task)),
        (f"datasets.{dataset}.network", lambda: _check_network(run)),
        (f"datasets.{dataset}.data.partition", lambda: _check_partition(run.data)),
    ]
    wrong = False
    for place, build in checks:
        try:
            build()
        except UserError as error:
            wrong = True
            yield f"{source}{place}: {error}"
    if not wrong:
        try:
            if shape := _shape(run.data.dataset):
                starts.check(run, shape)
        except UserError as error:
            yield f"{source}start of methods.{method} on datasets.{dataset}: {error}"
        try:
            built = algorithms.make(run.method, run.params)
            tasks.check_fit(built, tasks.make(run.task), run.method, run.task)
            check_method(built, run.method, run.train.participation)
        except UserError as error:
            yield f"{source}methods.{method} on datasets.{dataset}: {error}"


def _shape(dataset: str) -> tuple[int, ...] | None:
    """Return the shape of a dataset's samples, empty where they tell it; None if there is no such dataset."""
    try:
        return datasets.get(dataset).shape
    except UserError:
        return None  # said when it is prepared, which is before anything is trained


def _check_network(run: RunSpec) -> None:
    """Build a network without memory for its weights, for samples of the dataset's shape where that is known."""
    network = run.network
    build = registry.find(sys.modules[models.__name__], "network", network.name, "build")
    if (shape := _shape(run.data.dataset)) is None:
        return
    try:
        with torch.device("meta"):
            build(as_seen(shape, run.train), 1, **network.options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"network {network.name!r}: {error}") from None


def _check_partition(data: DataSpec) -> None:
    """Let one of our own rules deal made-up samples that it has every fact of: it complains if options are missing."""
    rule = registry.find(partitions, "partition rule", data.partition.rule, "partition")
    if data.partition.rule in registry.origins(partitions):
        return
    each = 2 * max(
        2, data.partition.least
    )  # a positive and a negative class of every client, which is a group
    client = np.repeat(np.arange(data.clients), each)
    labels = np.arange(len(client)) % 2
    sites = client if data.sources else None
    pool = Pool(labels, client + data.clients * (1 - labels), client, sites)
    rule(pool, data.partition, data.clients, np.random.default_rng(0))
