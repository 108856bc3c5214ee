"""One cell's configuration for a reader: every value of its runs, and the layer that it comes from."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Mapping

from fedbench.data.prepared import read_summary
from fedbench.errors import UserError, shortened, unknown
from fedbench.results.shipped import Shipped
from fedbench.spec import RunSpec
from fedbench.store.runs import Store
from fedbench.study.cells import Cell, single
from fedbench.study.configuration import file_of, load_paper, paper_keys
from fedbench.study.layers import Layer, origins, overrides, places
from fedbench.study.plan import Plan
from fedbench.study.unread import read_parts


def described_figure(plan: Plan, name: str) -> list[str]:
    """Return the lines that say what a figure shows, and how many of its runs are there."""
    figure, store, target, scale = plan.figure(name), Store(), f"{plan.study.key}/{name}", plan.scale.name
    lines = [
        f"{target} at scale {scale}: {figure.title}",
        f"{figure.kind} of {', '.join(figure.metrics)} against {figure.x}; "
        f"draw it: fedbench figure {target} --scale {scale}",
    ]
    for cell in plan.cells(name):
        done = sum(store.has(run.key) for run in cell.runs)
        lines.append(f"{cell.name}  {done}/{len(cell.runs)} runs")
    return lines


def described_cell(plan: Plan, pattern: str) -> list[str]:
    """Return the lines that show the one cell that matches ``pattern``.

    Raises:
        UserError: none matches, or several do; the message names some.
    """
    cell = _one_cell(plan, pattern)
    run, tuned = cell.runs[0], plan.tuned(cell)
    from_layer = origins([*plan.layers(cell), Layer("this call's set", overrides(plan.config.set))])
    where = f"not tuned; values from {file_of(plan.study, 'methods', cell.method)}"
    if tuned.values:
        where = f"tuned, {tuned.path}"
    if trials := tuned.trials(run):
        where += f" ({trials})"
    if tuned.published:
        where += f"; {', '.join(tuned.published)} as published, although trials chose otherwise"
    seeds = ", ".join(str(each.seed) for each in cell.runs)
    return [
        f"{cell.name} at scale {cell.scale}",
        f"seeds: {seeds}; keys: {', '.join(each.key for each in cell.runs)}",
        f"hyper-parameters: {where}",
        "",
        *_values(run, from_layer),
        "",
        *_features(plan, run),
        *_shipped(plan, cell),
        f"train it: {plan.command(cell)}",
    ]


def _features(plan: Plan, run: RunSpec) -> list[str]:
    """Return a line with the features of a table, none where it is not prepared here."""
    names = []
    with contextlib.suppress(UserError):
        names = read_summary(run.data.dataset, plan.config.data_dir).get("features", [])
    return [f"features: {shortened(', '.join(names))}"] if names else []


def _shipped(plan: Plan, cell: Cell) -> list[str]:
    """Return a line for each file with reference results of a cell: its seeds, its lines and the commit."""
    rows = [row for run in Shipped(plan).runs(cell).values() for row in run.values()]
    told = []
    for file in dict.fromkeys(row.source.rpartition(":")[0] for row in rows):
        of_file = [row for row in rows if row.source.startswith(f"{file}:")]
        lines = [int(row.source.rpartition(":")[2]) for row in of_file]
        seeds = ", ".join(dict.fromkeys(str(row.seed) for row in of_file))
        commits = ", ".join(dict.fromkeys(" ".join(row.commit for row in of_file).split()))
        told.append(f"reference results: seeds {seeds}; {file}:{min(lines)}-{max(lines)}; commit {commits}")
    return told


def _one_cell(plan: Plan, pattern: str) -> Cell:
    study, _, name = pattern.rpartition("/")
    key = difflib.get_close_matches(study, paper_keys(), n=1) if study else [plan.study.key]
    others = [target for near in key for target in load_paper(near).targets]
    if difflib.get_close_matches(name, others, n=1):
        asked = [f"{key[0]}/{other}" if study else other for other in others]
        raise unknown("table or figure", pattern, asked)
    return single(plan.cells(), pattern)


def _values(run: RunSpec, from_layer: Mapping[str, str]) -> list[str]:
    """Return a line for each value of a run: its place, the value, the layer it comes from, whether a rule reads it."""
    dumped = run.model_dump(mode="json")
    ignored = places(dumped).keys() - places(read_parts(dumped)).keys()
    rows = [
        (
            place,
            json.dumps(value),
            (from_layer.get(place) or from_layer.get(place.rpartition(".")[0], "default"))
            + "; its rule does not read it" * (place in ignored),
        )
        for place, value in (places(dumped) | {"train.prior": run.train.prior}).items()
        if value is not None and value != [] and place not in ("seed", "numerics")
    ]
    widths = [min(48, max(len(row[column]) for row in rows)) for column in (0, 1)]
    return [f"{place.ljust(widths[0])}  {value.ljust(widths[1])}  {source}" for place, value, source in rows]
