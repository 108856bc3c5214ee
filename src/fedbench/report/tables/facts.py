"""A table of facts about the data, counted from our own preparation and compared with what the paper prints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.data.summary import Counts, split_counts
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, Value
from fedbench.report.numbers import described
from fedbench.report.numbers.axes import check_axes
from fedbench.report.numbers.names import ABSENT, axis_name, axis_text, signed
from fedbench.report.numbers.published import Published, PublishedTable, load
from fedbench.report.tables.document import Table, origin
from fedbench.report.tables.fold import NOT_PREPARED
from fedbench.report.tables.layout import At, Axes, Entry, Grid, arranged
from fedbench.results.places import Place
from fedbench.specs import RunSpec

EQUAL, DIFFERENT = "=", "≠"


def make(plan: Plan, name: str) -> Table:
    """Assemble a table of kind ``facts``: what ``metrics`` name, for each dataset, setting and split.

    What is not prepared here keeps its place and the printed value; the notes say why there is none of ours.
    """
    paper, spec = plan.study, plan.table(name)
    datasets: list[Value] = [*dict.fromkeys([*spec.datasets, *plan.datasets(spec)])]
    where = {"dataset": datasets, **paper.values(spec)}
    axes: dict[str, list[Value]] = {**where, "split": [*spec.splits], "metric": [*spec.metrics]}
    check_axes(spec, axes, f"{paper.key}/{name}")
    runs = _runs(plan, where)
    read = {at: split_counts(run.data, run.seed, Path(plan.config.data_dir)) for at, run in runs.items()}
    counts = {at: known for at, (known, _) in read.items()}
    lacking = [str(at[0][1]) for at, (known, why) in read.items() if why and {*spec.splits} - known.keys()]
    keys = {f"{at[0][1]} {dict(at[1:])}": run.data.partition_key(run.seed) for at, run in runs.items()}
    print_ = load(paper.key, spec.published, additions=paper.measures) if spec.published else None
    said, rows = _counted(paper, axes, counts, print_)
    compares = any(row["published"] for row in rows)
    doubts = [value.doubt for value in (print_.values if print_ else []) if value.doubt]
    cells = arranged(
        spec, axes, said, lambda axis, value: str(value) if axis == "split" else axis_text(paper, axis, value)
    )
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=Grid(axis_name(paper, spec.rows[-1]), cells, compares, absent=NOT_PREPARED),
        notes=_notes(plan.seeds[0], lacking, compares, doubts),
        rows=pd.DataFrame([{"paper": paper.key, "table": name, **row} for row in rows]),
        provenance=origin(plan, name, f"data of seed {plan.seeds[0]}", partitions=keys),
    )


def _runs(plan: Plan, where: Axes) -> dict[Place, RunSpec]:
    """Return a run at each place, whose data are counted there."""
    method = next(iter(plan.study.methods))
    places: Iterable[Place] = (
        tuple(zip(where, at, strict=True)) for at in itertools.product(*where.values())
    )
    return {place: plan.cell(str(place[0][1]), dict(place[1:]), method).runs[0] for place in places}


def _counted(
    paper: Paper, axes: Axes, counts: Mapping[Place, Mapping[str, Counts]], print_: PublishedTable | None
) -> tuple[list[tuple[At, Entry, str]], list[dict[str, Any]]]:
    """Return what stands at each place, and the rows of the CSV."""
    said, rows = list[tuple[At, Entry, str]](), []
    where = {axis: values for axis, values in axes.items() if axis != "metric"}
    prints = print_.at(where, [*map(str, axes["metric"])]) if print_ else {}
    for values in itertools.product(*axes.values()):
        place = dict(zip(axes, values, strict=True))
        metric, at = str(place["metric"]), tuple(place.items())
        known = counts[at[:-2]].get(str(place["split"]))
        value = None if known is None else known.fact(metric)
        entry = _entry(value, prints.get((at[:-1], metric)), paper.measure(metric).decimals)
        said.append((place, entry, ""))
        varying = {a: v for a, v in place.items() if len(axes[a]) > 1 or a in ("dataset", "metric")}
        equal = entry.symbol == EQUAL if entry.symbol else ""
        rows.append({**varying, "value": value, "published": entry.printed, "equal": equal})
    return said, rows


def _entry(value: float | None, printed: Published | None, decimals: int) -> Entry:
    """Hold a fact against print, with as many decimals as are printed."""
    if printed and printed.printed_text:
        decimals = len(printed.printed_text.partition(".")[2])
    entry = Entry(
        ABSENT if value is None else f"{value:.{decimals}f}",
        printed=printed.printed_text if printed else "",
        doubtful=bool(printed and printed.doubt),
    )
    if value is None or printed is None or math.isnan(printed.printed):
        return entry
    difference = float(entry.value) - printed.printed
    if not difference:
        return replace(entry, symbol=EQUAL)
    return replace(entry, symbol=DIFFERENT, delta=signed(difference, decimals))


def _notes(seed: int, lacking: Sequence[str], compares: bool, doubts: Sequence[str]) -> list[str]:
    lines = [f"Ours: counted from the data as prepared here (seed {seed})."]
    if compares:
        lines[0] += f" Paper: as printed. {EQUAL} equal in the printed digits, {DIFFERENT} not."
    if lacking:
        lines.append(f"{', '.join(dict.fromkeys(lacking))}: `fedbench doctor` says what is needed.")
    return lines + ([f"†: {'. '.join(dict.fromkeys(doubts))}."] if doubts else [])
