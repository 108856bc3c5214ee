"""What was trained, in words that are derived from the resolved runs: a caption cannot say anything else."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedbench.data import multi_source
from fedbench.data.summary import Counts, binary_task, by_site, remarks, repeats
from fedbench.errors import UserError
from fedbench.results.names import phrase
from fedbench.spec import RunSpec
from fedbench.study.cells import Cell
from fedbench.study.configuration import file_of
from fedbench.study.layers import LENGTHS
from fedbench.study.plan import Plan, methods_by_dataset
from fedbench.study.schema import Paper
from fedbench.study.tuned import Tuned

LISTED = 5
"""Classes that are named; more are counted."""


def lengths(runs: Iterable[RunSpec]) -> str:
    """Say how long some runs train: ``2000 or 4000 iterations``, ``30 rounds of 5 local epochs``."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        train = run.train
        unit = next(name for name in LENGTHS if getattr(train, name) is not None)
        local = f" of {counted(train.local_epochs, 'local epoch')}" if train.local_epochs is not None else ""
        numbers.setdefault((unit.removesuffix("s"), local), []).append(f"{getattr(train, unit):.15g}")
    said = (counted(" or ".join(_unique(of)), unit) + local for (unit, local), of in numbers.items())
    return " or ".join(said)


def trained(cells: Sequence[Cell]) -> list[str]:
    """Say for each dataset how long, with how many clients and from what it is trained, datasets alike together."""
    facts: dict[str, list[str]] = {}
    for dataset, of in _by_dataset(cells).items():
        clients = counted(" or ".join(_unique(str(run.data.clients) for run in of)), "client")
        begun = " or ".join(_unique(map(beginning, of)))
        facts.setdefault(f"{lengths(of)}, {clients}{begun}", []).append(dataset)
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
    model = f"a model of {lengths([other])} of {other.method} on {other.data.dataset}" if other else ""
    head = " without its output layer" if run.start.drop_head else ""
    return f", from {model or 'the weights of a file'}{head}"


def changed(chosen: Mapping[str, object]) -> str:
    """Say what a call sets in all runs, empty where it sets nothing."""
    said = ", ".join(f"{place} = {value}" for place, value in chosen.items())
    return said and f"Set for this call: {said}"


def caption(plan: Plan, name: str, run: str = "") -> str:
    """Return the caption of a table: title, scale with what was ``run`` at it, and what a call sets."""
    spec = plan.table(name)
    scale = f"Scale {plan.scale.name}{run}"
    parts = [phrase(spec.title), phrase(spec.caption), scale, changed(plan.config.set)]
    return f"{'. '.join(filter(None, parts))}."


def chosen(plan: Plan, cells: Sequence[Cell]) -> list[str]:
    """Say where hyper-parameters come from, cells alike together, and which are the least or largest value tried."""
    ways: dict[str, list[Cell]] = {}
    edges: dict[str, dict[str, None]] = {}
    for cell in cells:
        tuned = plan.tuned(cell)
        ways.setdefault(_origin(plan.study, cell, tuned), []).append(cell)
        for name in tuned.edges:
            edges.setdefault(cell.dataset, {})[f"{cell.method} {name.removeprefix('train.')}"] = None
    count = Counter(cell.dataset for cell in cells)
    lines = []
    for way, of in ways.items():
        full = [name for name, n in Counter(cell.dataset for cell in of).items() if n == count[name]]
        rest = methods_by_dataset([cell for cell in of if cell.dataset not in full])
        lines.append(f"Hyper-parameters {way}: {'; '.join(filter(None, [', '.join(full), rest]))}.")
    at = "; ".join(f"{dataset}: {', '.join(names)}" for dataset, names in edges.items())
    return [*lines, *([f"Tuned values at the boundary of the search grid: {at}."] if at else [])]


def _origin(paper: Paper, cell: Cell, tuned: Tuned) -> str:
    """Say where the hyper-parameters of one cell come from."""
    if not tuned.values:
        file = file_of(paper, "methods", cell.method)
        return "as published" if tuned.published else f"not tuned for their dataset, values from {file}"
    trials = tuned.trials(cell.runs[0])
    how = f"tuned on validation data{trials and f', {trials}'}"
    return f"as published, others {how}" if tuned.published else how


def tasks(cells: Sequence[Cell], data_dir: Path) -> list[str]:
    """Say of each binary task which class is positive, its share in training, and how many samples were dropped.

    Of each dataset what else a reader should know, such as patients in two parts. Silent about what is not
    partitioned on this machine.
    """
    lines = []
    for dataset, runs in _by_dataset(cells).items():
        rules = {run.data.partition_key(run.seed): run for run in runs}.values()
        binary = [task for run in rules if (task := binary_task(run.data, run.seed, data_dir))]
        if binary:
            positive = " or ".join(_unique(_positive(task.positive) for task in binary))
            share = span((100 * task.share for task in binary), "{:.1f} %")
            n = span((task.train for task in binary), "{:,}")
            dropped = span((task.dropped for task in binary), "{:,}")
            lines.append(f"{dataset}: {positive} ({share} of {n} training samples; {dropped} dropped).")
        known = _unique(remark for run in rules for remark in remarks(run.data, run.seed, data_dir))
        lines += [f"{dataset}: {remark}." for remark in known]
    return lines


def sites(cells: Sequence[Cell], data_dir: Path) -> list[str]:
    """Say how many samples each site trains and tests with and how many are positive, and which have no AUC and why."""
    lines = []
    for dataset, (run, *_) in _by_dataset(cells).items():
        trained = by_site(run.data, run.seed, data_dir, "Training")
        tested = {site: n for site, n in by_site(run.data, run.seed, data_dir).items() if site}
        both = {site: [f"{n.n} ({n.positive})" for n in (trained[site], n)] for site, n in tested.items()}
        counts = ", ".join(f"{site} {' + '.join(of)}" for site, of in both.items())
        if counts:
            lines.append(f"{dataset}: training + test samples (positive ones) by site: {counts}.")
        if lacking := [_one_class(site, n) for site, n in tested.items() if not (n.positive and n.negative)]:
            over = f"AUCs of the worst site and their spread are over {len(tested) - len(lacking)} of {len(tested)}"
            lines.append(f"{dataset}: {over} sites; {'; '.join(lacking)}.")
    return lines


def repeated(cells: Sequence[Cell], data_dir: Path) -> str:
    """Say of which datasets patients have several samples, which intervals over test samples overlook; else empty."""
    names = [name for name, (run, *_) in _by_dataset(cells).items() if repeats(run.data, data_dir)]
    said = "patients have several samples; intervals take samples as independent and are too short"
    return f"{', '.join(names)}: {said}." if names else ""


def _one_class(site: str, counts: Counts) -> str:
    if not counts.n:
        return f"{site} has no test sample"
    return f"{'all' if counts.positive else 'none'} of the {counts.n} test samples of {site} are positive"


def other_data(cells: Sequence[Cell], made: Mapping[str, Sequence[str]], data_dir: Path) -> str:
    """Name the datasets whose runs were ``made`` from data unlike each other's, or unlike those prepared here now.

    Silent about what is not prepared on this machine.
    """
    apart = [name for name, digests in made.items() if len(digests) > 1]
    for dataset, (run, *_) in _by_dataset(cells).items():
        with contextlib.suppress(UserError):
            if dataset in made and multi_source.checksum(run.data, data_dir) not in made[dataset]:
                apart.append(dataset)
    cure = "trained on data other than each other's or those prepared here now; the cure: `fedbench forget DATASET`"
    return f"Numbers that do not compare: {', '.join(_unique(apart))} ({cure})." if apart else ""


def other_code(cells: Sequence[Cell], made: Mapping[str, int]) -> str:
    """Say how many runs of which methods other code made than today's, by the names of cells; else nothing."""
    theirs = [cell for cell in cells if cell.name in made]
    if not theirs:
        return ""
    count = f"{sum(made.values())} of {sum(len(cell.runs) for cell in theirs)} runs"
    return f"Other code than today's made {count} ({methods_by_dataset(theirs)})."


def selection(paper: Paper, cells: Sequence[Cell]) -> str:
    """Say by which rule the evaluation that counts was chosen, empty where it is the last one of all runs."""
    rules = {cell.runs[0].train.select for cell in cells}
    chosen = [f"the one with the best {paper.measure(rule).label}" for rule in sorted(filter(None, rules))]
    if not chosen:
        return ""
    if None in rules:
        chosen.insert(0, "the last one")
    return f"The evaluation that counts is {' or, as configured, '.join(chosen)}."


def _positive(classes: Sequence[str]) -> str:
    """Say which classes are positive, of many the first ones."""
    more = f" and {len(classes) - LISTED} more" if len(classes) > LISTED else ""
    return f"positive: {', '.join(classes[:LISTED])}{more}"


def span(numbers: Iterable[float], form: str = "{}") -> str:
    """Say the least and the largest of some numbers, once where their texts are the same; nothing of none."""
    ordered = sorted(numbers)
    return " to ".join(_unique(map(form.format, ordered[:1] + ordered[-1:])))


def _by_dataset(cells: Iterable[Cell]) -> dict[str, list[RunSpec]]:
    """Return the first run of each cell by dataset."""
    runs: dict[str, list[RunSpec]] = {}
    for cell in cells:
        runs.setdefault(cell.dataset, []).append(cell.runs[0])
    return runs


def counted(number: float | str, unit: str) -> str:
    """Write a number before its unit: ``1 seed``, ``2.5 epochs``, ``3 to 5 seeds``."""
    text = number if isinstance(number, str) else f"{number:.15g}"
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
