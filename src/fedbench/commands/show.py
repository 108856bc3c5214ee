"""One cell's configuration for a reader: every value of its runs, and the layer that it comes from."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from fedbench.errors import unknown
from fedbench.spec import RunSpec
from fedbench.study.cells import Cell, single
from fedbench.study.configuration import file_of, load_paper, paper_keys
from fedbench.study.layers import Layer, origins, overrides, places
from fedbench.study.plan import Plan
from fedbench.study.unread import read_parts


def described_figure(plan: Plan, name: str) -> list[str]:
    """Return the lines that say what a figure shows, and how many of its runs are there."""
    from fedbench.store.runs import Store

    figure, store, key = plan.figure(name), Store(), plan.study.key
    lines = [
        f"{key}/{name} at scale {plan.scale.name}: {figure.title}",
        f"{figure.kind} of {', '.join(figure.metrics)} against {figure.x}; draw it: fedbench figure {key}/{name}",
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
    where = (
        f"tuned, {tuned.path}"
        if tuned.values
        else f"not tuned; values from {file_of(plan.study, 'methods', cell.method)}"
    )
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
    ]


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
