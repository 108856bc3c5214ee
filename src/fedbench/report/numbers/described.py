"""What was trained, in words that are derived from the resolved runs: a caption cannot say anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.data.summary import binary_task
from fedbench.plan.cells import Cell, tuned_for
from fedbench.plan.schema import Paper
from fedbench.specs import RunSpec

LISTED = 5
"""Classes that are named; more are counted."""


def lengths(cells: Sequence[Cell]) -> str:
    """Say how long the runs of some cells train: ``4000 iterations``, ``30 rounds of 5 local epochs``."""
    return " or ".join(_unique(length(cell.runs[0]) for cell in cells))


def length(run: RunSpec) -> str:
    """Say how long one run trains."""
    train = run.train
    unit = next(
        name for name in ("iterations", "epochs", "rounds", "cycles") if getattr(train, name) is not None
    )
    count = getattr(train, unit)
    local = f" of {_count(train.local_epochs, 'local epoch')}" if train.local_epochs is not None else ""
    return _count(count, unit.removesuffix("s")) + local


def trained(cells: Sequence[Cell]) -> list[str]:
    """Say for each dataset how long and with how many clients it is trained, datasets that are alike together."""
    facts: dict[str, list[str]] = {}
    for dataset in _unique(cell.dataset for cell in cells):
        runs = [cell for cell in cells if cell.dataset == dataset]
        clients = " or ".join(_unique(str(cell.runs[0].data.clients) for cell in runs))
        facts.setdefault(f"{lengths(runs)}, {clients} client{'s' * (clients != '1')}", []).append(dataset)
    return [f"{', '.join(datasets)}: {fact}." for fact, datasets in facts.items()]


def changed(chosen: Mapping[str, Any]) -> str:
    """Say what a call sets in all runs, empty where it sets nothing."""
    return (
        f"Set for this call: {', '.join(f'{place} = {value}' for place, value in chosen.items())}"
        if chosen
        else ""
    )


def chosen(paper: Paper, cells: Sequence[Cell], config_dir: Path) -> list[str]:
    """Say which methods have tuned hyper-parameters, and which those of the paper's file."""
    tuned: dict[str, list[str]] = {}
    plain: dict[str, list[str]] = {}
    for cell in cells:
        _, values = tuned_for(paper, cell.dataset, cell.setting, cell.method, config_dir)
        kind = tuned if values else plain
        if cell.method not in kind.setdefault(cell.dataset, []):
            kind[cell.dataset].append(cell.method)
    lines = []
    for dataset in _unique(cell.dataset for cell in cells):
        parts = [
            (tuned.get(dataset, []), "tuned on validation data"),
            (plain.get(dataset, []), "as the paper's file has them"),
        ]
        words = [f"{how} for {', '.join(names)}" for names, how in parts if names]
        if len(words) == 1:
            words = [next(how for names, how in parts if names)]
        lines.append(f"{dataset}: hyper-parameters {'; '.join(words)}.")
    return lines


def tasks(cells: Sequence[Cell], data_dir: Path) -> list[str]:
    """Say of each binary task which class is positive, its share in training, and how many samples were dropped.

    Silent about what is not partitioned on this machine.
    """
    lines = []
    for dataset in _unique(cell.dataset for cell in cells):
        first = [cell.runs[0] for cell in cells if cell.dataset == dataset]
        rules = {run.data.partition_key(run.seed): run for run in first}
        found = [task for run in rules.values() if (task := binary_task(run.data, run.seed, data_dir))]
        if not found:
            continue
        positive = " or ".join(_unique(_names(task.positive) for task in found))
        share = _span([f"{task.share:.1%}".replace("%", " %") for task in found])
        train = _span([f"{task.train:,}" for task in found])
        dropped = _span([f"{task.dropped:,}" if task.dropped else "none" for task in found])
        lines.append(
            f"{dataset}: positive is {positive}, {share} of {train} training samples; {dropped} dropped."
        )
    return lines


def _names(classes: Sequence[str]) -> str:
    more = f" and {len(classes) - LISTED} more classes" if len(classes) > LISTED else ""
    return ", ".join(classes[:LISTED]) + more


def _span(texts: Sequence[str]) -> str:
    unique = _unique(texts)
    return unique[0] if len(unique) == 1 else f"{unique[0]} to {unique[-1]}"


def _count(number: float, unit: str) -> str:
    return f"{number:g} {unit}{'s' * (number != 1)}"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
