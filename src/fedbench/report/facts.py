"""A table of facts about the data, counted from our own preparation and compared with what the paper prints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from fedbench.data.summary import Counts, by_site, split_counts
from fedbench.errors import UserError
from fedbench.report import described
from fedbench.report.document import Table, origin
from fedbench.report.layout import At, Axes, Entry, Grid, arranged
from fedbench.results.export import add_counts
from fedbench.results.frame import Printed
from fedbench.results.names import ABSENT, axis_name, axis_text, signed
from fedbench.results.places import check_axes
from fedbench.results.published import PublishedTable, load_published
from fedbench.results.shipped import read_facts
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, TableSpec, Value

EQUAL, DIFFERENT = "=", "≠"


@dataclass
class Facts:
    """The counts of a table, of each dataset and setting by split; splits of a site are called ``Test@Basel``.

    What is not prepared here is taken from the counts that came with the repository, where they are of the same rule.

    Attributes:
        known: the counts by dataset and setting, then by split.
        keys: of the partitions.
        counted: what was counted here, by dataset, key and split.
        elsewhere: datasets with counts that came with the repository.
        missing: datasets that lack a split.
    """

    known: dict[tuple[Value, ...], dict[str, Counts]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    counted: dict[tuple[str, str, str], Counts] = field(default_factory=dict)
    elsewhere: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)


def counts_of(plan: Plan, spec: TableSpec, axes: Axes) -> Facts:
    """Count what a table shows, each dataset and setting once."""
    facts, folder = Facts(), Path(plan.config.data_dir)
    shipped = read_facts() if plan.config.shipped else {}
    sites = dict.fromkeys("".join(metric.partition("@")[1:]) for metric in spec.metrics)
    wanted = [f"{split}{site}" for split in spec.splits for site in sites]
    for dataset, *values in itertools.product(*(axes[axis] for axis in ("dataset", *plan.study.settings))):
        setting = dict(zip(plan.study.settings, values, strict=True))
        name, run = str(dataset), plan.cell(str(dataset), setting, next(iter(plan.study.methods))).runs[0]
        counts = split_counts(run.data, run.seed, folder)
        for part in ("Training", "Test") if any(sites) else ():
            of_sites = by_site(run.data, run.seed, folder, part)
            counts |= {f"{part}@{site}": of for site, of in of_sites.items()}
        key = facts.keys[f"{name} {setting}"] = run.data.partition_key(run.seed)
        facts.counted |= {(name, key, split): counts[split] for split in wanted if split in counts}
        lent = {
            split: shipped[key, split] for split in wanted if (key, split) in shipped and split not in counts
        }
        facts.known[dataset, *values] = counts | lent
        if lent:
            facts.elsewhere[name] = None
        if not {*wanted} <= {*counts, *lent}:
            facts.missing[name] = None
    return facts


def export(plan: Plan, name: str) -> Path:
    """Write what was counted here of a table to ``reproduced/facts.csv`` and return its path.

    Raises:
        UserError: nothing of it was prepared here.
    """
    spec = plan.table(name)
    facts = counts_of(plan, spec, _axes(plan, spec, name))
    if not facts.counted:
        raise UserError(f"none of the data of {plan.study.key}/{name} was prepared here, and no labels are")
    return add_counts(plan.study.key, facts.counted)


def _axes(plan: Plan, spec: TableSpec, name: str) -> Axes:
    axes: dict[str, list[Value]] = {
        "dataset": [*dict.fromkeys([*spec.datasets, *plan.datasets(spec)])],
        **plan.study.values(spec),
        "split": [*spec.splits],
        "metric": [*spec.metrics],
    }
    check_axes(spec, axes, f"{plan.study.key}/{name}")
    return axes


def facts_table(plan: Plan, name: str) -> Table:
    """Assemble a table of kind ``facts``: what ``metrics`` name, for each dataset, setting and split.

    What is not prepared here keeps its place and the printed value; the notes say why there is none of ours.
    """
    paper, spec = plan.study, plan.table(name)
    axes = _axes(plan, spec, name)
    facts = counts_of(plan, spec, axes)
    print_ = load_published(paper.key, spec.published, additions=paper.measures) if spec.published else None
    said = [*_said(paper, axes, facts, print_)]
    varying = [axis for axis, values in axes.items() if len(values) > 1 or axis in ("dataset", "metric")]
    rows = [
        {
            **{"paper": paper.key, "table": name}, **{axis: at[axis] for axis in varying}, "value": value,
            "published": entry.printed, "equal": entry.symbol and entry.symbol == EQUAL,
        }
        for at, value, entry in said
    ]  # fmt: skip
    columns, blocks = arranged(
        spec,
        axes,
        [(at, entry) for at, _, entry in said],
        lambda axis, value: str(value) if axis == "split" else axis_text(paper, axis, value),
    )
    compares = any(entry.printed for _, _, entry in said)
    seen = {str(dataset) for (dataset, *_), counts in facts.known.items() if counts}
    stub = axis_name(paper, spec.rows[-1])
    lacking = [name for name in map(str, axes["dataset"]) if name not in seen]
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=Grid(stub, columns, blocks, compares, absent="Not prepared here", lacking=lacking),
        notes=_notes(plan, facts, compares, print_),
        rows=pd.DataFrame(rows),
        provenance=origin(plan, name, f"data of seed {plan.seeds[0]}", partitions=facts.keys),
    )


def _said(
    paper: Paper, axes: Axes, facts: Facts, print_: PublishedTable | None
) -> Iterator[tuple[At, float | None, Entry]]:
    """Yield each place of the table with our value and what stands there."""
    where = {axis: values for axis, values in axes.items() if axis != "metric"}
    prints = print_.at(where, [*map(str, axes["metric"])]) if print_ else {}
    for values in itertools.product(*axes.values()):
        at = dict(zip(axes, values, strict=True))
        metric = str(at["metric"])
        fact, of, site = metric.partition("@")
        counts = facts.known[at["dataset"], *(at[name] for name in paper.settings)].get(
            f"{at['split']}{of}{site}"
        )
        value = None if counts is None else counts.fact(fact)
        printed = prints.get((tuple(at.items())[:-1], metric))
        yield at, value, _entry(value, printed, paper.measure(metric).decimals)


def _entry(value: float | None, printed: Printed | None, decimals: int) -> Entry:
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


def _notes(plan: Plan, facts: Facts, compares: bool, print_: PublishedTable | None) -> list[str]:
    lines = [f"Ours: counted from the data as prepared here (seed {plan.seeds[0]})."]
    if compares:
        lines[0] += f" Paper: as published. {EQUAL} equal in the published digits, {DIFFERENT} not."
    if facts.elsewhere:
        lines.append(f"{', '.join(facts.elsewhere)}: counted elsewhere, as reproduced/facts.csv says.")
    if facts.missing:
        lines.append(f"{', '.join(facts.missing)}: `fedbench doctor` says what is needed.")
    doubts = dict.fromkeys(value.doubt for value in (print_.values if print_ else []) if value.doubt)
    return lines + ([f"†: {'. '.join(doubts)}."] if doubts else [])
