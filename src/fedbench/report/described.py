"""What was trained, in words that are derived from the resolved runs: a caption cannot say anything else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.data import multi_source
from fedbench.data.summary import Counts, binary_task, by_site, remarks
from fedbench.errors import UserError
from fedbench.results.names import phrase
from fedbench.spec import RunSpec
from fedbench.study.cells import Cell
from fedbench.study.configuration import file_of
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper
from fedbench.study.tuned import Tuned

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
    """Say for each dataset how long, with how many clients and from what it is trained, datasets alike together."""
    facts: dict[str, list[str]] = {}
    for dataset in _unique(cell.dataset for cell in cells):
        runs = [cell for cell in cells if cell.dataset == dataset]
        clients = " or ".join(_unique(str(cell.runs[0].data.clients) for cell in runs))
        begun = " or ".join(_unique(beginning(cell.runs[0]) for cell in runs))
        fact = f"{lengths(runs)}, {clients} client{'s' * (clients != '1')}{begun}"
        facts.setdefault(fact, []).append(dataset)
    return [f"{', '.join(datasets)}: {fact}." for fact, datasets in facts.items()]


def weights(cells: Sequence[Cell]) -> list[str]:
    """Say on which datasets averages weigh clients by their samples, empty where nowhere."""
    names = _unique(cell.dataset for cell in cells if cell.runs[0].train.weights == "samples")
    return [f"{', '.join(names)}: averages weigh clients by their training samples."] if names else []


def beginning(run: RunSpec) -> str:
    """Say what a run starts from, if not from random weights."""
    if run.start is None:
        return ""
    other = run.start.run
    model = (
        f"the weights of a file (SHA-256 {run.start.sha256[:16]})"
        if run.start.sha256
        else f"a model of {length(other)} of {other.method} on {other.data.dataset}"
        if other
        else ""
    )
    return f", from {model}{' but its output layer' * run.start.drop_head}"


def changed(chosen: Mapping[str, Any]) -> str:
    """Say what a call sets in all runs, empty where it sets nothing."""
    return (
        f"Set for this call: {', '.join(f'{place} = {value}' for place, value in chosen.items())}"
        if chosen
        else ""
    )


def caption(plan: Plan, name: str, run: str = "") -> str:
    """Return the caption of a table: title, scale with what was ``run`` at it, and what a call sets."""
    spec = plan.table(name)
    parts = [
        phrase(spec.title),
        phrase(spec.caption),
        f"Scale {plan.scale.name}{run}",
        changed(plan.config.set),
    ]
    return f"{'. '.join(filter(None, parts))}."


def chosen(plan: Plan, cells: Sequence[Cell]) -> list[str]:
    """Say where each method's hyper-parameters come from, how long the trials were that chose them, and which are on an
    edge of what was tried.
    """
    edges: dict[str, dict[str, None]] = {}
    ways: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        tuned = plan.tuned(cell)
        names = ways.setdefault(cell.dataset, {}).setdefault(_origin(plan.study, cell, tuned), [])
        if cell.method not in names:
            names.append(cell.method)
        for name in tuned.edges:
            edges.setdefault(cell.dataset, {})[f"{cell.method} {name.removeprefix('train.')}"] = None
    lines = []
    for dataset, hows in ways.items():
        words = [how if len(hows) == 1 else f"{how} for {', '.join(names)}" for how, names in hows.items()]
        lines.append(f"{dataset}: hyper-parameters {'; '.join(words)}.")
        if dataset in edges:
            lines.append(
                f"{dataset}: tuned values at the boundary of the search grid: {', '.join(edges[dataset])}."
            )
    return lines


def _origin(paper: Paper, cell: Cell, tuned: Tuned) -> str:
    """Say where the hyper-parameters of one cell come from."""
    if not tuned.values:
        file = file_of(paper, "methods", cell.method)
        return "as published" if tuned.published else f"not tuned for this dataset (values from {file})"
    trials = tuned.trials(cell.runs[0])
    how = "tuned on validation data" + (f" ({trials})" if trials else "")
    return f"as published, others {how}" if tuned.published else how


def tasks(cells: Sequence[Cell], data_dir: Path) -> list[str]:
    """Say of each binary task which class is positive, its share in training, and how many samples were dropped.

    Of each dataset what else a reader should know, such as patients in two parts. Silent about what is not
    partitioned on this machine.
    """
    lines = []
    for dataset in _unique(cell.dataset for cell in cells):
        first = [cell.runs[0] for cell in cells if cell.dataset == dataset]
        rules = {run.data.partition_key(run.seed): run for run in first}
        binary = [task for run in rules.values() if (task := binary_task(run.data, run.seed, data_dir))]
        known = _unique(remark for run in rules.values() for remark in remarks(run.data, run.seed, data_dir))
        if binary:
            positive = " or ".join(_unique(_positive(task.positive) for task in binary))
            share = _span((task.share for task in binary), "{:.1%}".format).replace("%", " %")
            train = _span((task.train for task in binary), "{:,}".format)
            dropped = _span((task.dropped for task in binary), lambda n: f"{n:,} samples" if n else "none")
            lines.append(f"{dataset}: {positive} ({share} of {train} training samples; {dropped} dropped).")
        lines += [f"{dataset}: {remark}." for remark in known]
    return lines


def sites(cells: Sequence[Cell], data_dir: Path) -> list[str]:
    """Say how many samples each site trains and tests with and how many are positive, and which have no AUC and why."""
    lines = []
    for dataset in _unique(cell.dataset for cell in cells):
        run = next(cell.runs[0] for cell in cells if cell.dataset == dataset)
        trained = by_site(run.data, run.seed, data_dir, "Training")
        tested = {site: n for site, n in by_site(run.data, run.seed, data_dir).items() if site}
        if not tested:
            continue
        counts = (f"{site} {_both(trained[site])} + {_both(n)}" for site, n in tested.items())
        lines.append(f"{dataset}: training + test samples (positive ones) by site: {', '.join(counts)}.")
        if lacking := [_one_class(site, n) for site, n in tested.items() if not (n.positive and n.negative)]:
            over = f"AUCs of the worst site and their spread are over {len(tested) - len(lacking)} of {len(tested)}"
            lines.append(f"{dataset}: {over} sites; {'; '.join(lacking)}.")
    return lines


def _both(counts: Counts) -> str:
    return f"{counts.n} ({counts.positive})"


def _one_class(site: str, counts: Counts) -> str:
    if not counts.n:
        return f"{site} has no test sample"
    return f"{'all' if counts.positive else 'none'} of the {counts.n} test samples of {site} are positive"


def other_data(cells: Sequence[Cell], made: Mapping[str, Sequence[str]], data_dir: Path) -> list[str]:
    """List the datasets whose prepared arrays are none of those that the runs were ``made`` from.

    Silent about what is not prepared on this machine.
    """
    names = []
    for dataset, data in {cell.dataset: cell.runs[0].data for cell in cells}.items():
        with contextlib.suppress(UserError):
            if dataset in made and multi_source.checksum(data, data_dir) not in made[dataset]:
                names.append(dataset)
    return names


def _positive(classes: Sequence[str]) -> str:
    """Say which classes are positive: digits that follow each other as a range, of many others the first ones."""
    if len(classes) == 1:
        return f"positive class is {classes[0]}"
    digits = [int(name) for name in classes if name.isdecimal()] or [0]
    if len(classes) > 2 and digits == [*range(digits[0], digits[0] + len(classes))]:
        return f"positive classes are {classes[0]}–{classes[-1]}"
    more = f" and {len(classes) - LISTED} more" if len(classes) > LISTED else ""
    return f"positive classes are {', '.join(classes[:LISTED])}{more}"


def _span(numbers: Iterable[float], text: Callable[[Any], str]) -> str:
    """Say the least and the largest of some numbers, once where their texts are the same."""
    ordered = sorted(numbers)
    return " to ".join(_unique(map(text, (ordered[0], ordered[-1]))))


def _count(number: float, unit: str) -> str:
    return f"{number:g} {unit}{'s' * (number != 1)}"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
