"""A table of facts about the data, counted from our own preparation and compared with what the paper prints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.data.summary import Counts, by_site, split_counts
from fedbench.errors import UserError
from fedbench.report import described
from fedbench.report.document import Table, origin
from fedbench.report.layout import NOT_PREPARED, At, Axes, Entry, Grid, arranged
from fedbench.results import shipped
from fedbench.results.axes import check_axes
from fedbench.results.export import add_counts
from fedbench.results.frame import Printed
from fedbench.results.names import ABSENT, axis_name, axis_text, signed
from fedbench.results.published import PublishedTable, load_published
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, TableSpec, Value

EQUAL, DIFFERENT = "=", "≠"
OF_DATA = {
    "rows": ["dataset"],
    "columns": ["metric", "split"],
    "splits": ["Training", "Test"],
    "metrics": ["n_samples", "n_positive", "positive_ratio"],
}
"""What a table of kind ``data`` counts, and where it stands."""


@dataclass
class Facts:
    """Counts a table's facts; each dataset and setting is read once, what is missing is remembered.

    What is not prepared here is taken from the counts that came with the repository, where they are of the same rule.
    ``splits`` are parts of the data and, as ``Test@Basel``, those of a site.
    """

    plan: Plan
    splits: Sequence[str]
    keys: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, None] = field(default_factory=dict)
    counted: dict[tuple[str, str, str], Counts] = field(default_factory=dict)
    _shipped: shipped.Facts = field(default_factory=dict)
    _known: dict[tuple[Value, ...], Mapping[str, Counts]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.plan.config.shipped:
            self._shipped = shipped.read_facts()

    def value(self, place: At) -> float | None:
        """Return one fact, None where it is not known here."""
        setting = {name: place[name] for name in self.plan.study.settings}
        where = (place["dataset"], *setting.values())
        if where not in self._known:
            self._known[where] = self._read(str(place["dataset"]), setting)
        fact, at, site = str(place["metric"]).partition("@")
        counts = self._known[where].get(f"{place['split']}{at}{site}")
        return None if counts is None else counts.fact(fact)

    def _read(self, dataset: str, setting: Mapping[str, Value]) -> Mapping[str, Counts]:
        method = next(iter(self.plan.study.methods))
        run = self.plan.cell(dataset, setting, method).runs[0]
        counts, reason = split_counts(run.data, run.seed, Path(self.plan.config.data_dir))
        if any("@" in split for split in self.splits):
            for part in ("Training", "Test"):
                of_sites = by_site(run.data, run.seed, self.plan.config.data_dir, part)
                counts |= {f"{part}@{site}": of for site, of in of_sites.items()}
        key = self.keys[f"{dataset} {dict(setting)}"] = run.data.partition_key(run.seed)
        wanted = {*self.splits}
        self.counted |= {(dataset, key, split): counts[split] for split in wanted & counts.keys()}
        for split in wanted - counts.keys():
            if (key, split) in self._shipped:
                counts[split] = self._shipped[key, split]
                self.elsewhere[dataset] = None
        if reason and not wanted <= counts.keys():
            self.missing[dataset] = reason
        return counts


def export(plan: Plan, name: str) -> Path:
    """Write what was counted here of a table to ``reproduced/facts.csv`` and return its path.

    Raises:
        UserError: nothing of it was prepared here.
    """
    facts, axes = Facts(plan, _splits(spec_of(plan, name))), _axes(plan, name)
    _counted(plan.study, axes, facts, None)
    if not facts.counted:
        raise UserError(f"none of the data of {plan.study.key}/{name} was prepared here, and no labels are")
    return add_counts(plan.study.key, facts.counted)


def _splits(spec: TableSpec) -> list[str]:
    """Return what a table counts: its splits, of each site that its metrics name and of all."""
    ends = dict.fromkeys("".join(metric.partition("@")[1:]) for metric in spec.metrics)
    return [f"{split}{end}" for split in spec.splits for end in ends]


def spec_of(plan: Plan, name: str) -> TableSpec:
    """Return the specification of a table about the data; one of kind ``data`` has one of kind ``facts``."""
    spec = plan.table(name)
    if spec.kind != "data":
        return spec
    first = {setting: values[:1] for setting, values in plan.study.values(spec).items()}
    return spec.model_copy(update={**OF_DATA, "settings": first})


def _axes(plan: Plan, name: str) -> Axes:
    paper, spec = plan.study, spec_of(plan, name)
    axes: dict[str, list[Value]] = {
        "dataset": [*dict.fromkeys([*spec.datasets, *plan.datasets(spec)])],
        **paper.values(spec),
        "split": [*spec.splits],
        "metric": [*spec.metrics],
    }
    check_axes(spec, axes, f"{paper.key}/{name}")
    return axes


def facts_table(plan: Plan, name: str) -> Table:
    """Assemble a table of kind ``facts`` or ``data``: what ``metrics`` name, for each dataset, setting and split.

    What is not prepared here keeps its place and the printed value; the notes say why there is none of ours.
    """
    paper, spec, axes = plan.study, spec_of(plan, name), _axes(plan, name)
    facts = Facts(plan, _splits(spec))
    print_ = load_published(paper.key, spec.published, additions=paper.measures) if spec.published else None
    said, rows = _counted(paper, axes, facts, print_)
    compares = any(row["published"] for row in rows)
    doubts = [value.doubt for value in (print_.values if print_ else []) if value.doubt]
    columns, blocks = arranged(
        spec, axes, said, lambda axis, value: str(value) if axis == "split" else axis_text(paper, axis, value)
    )
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=Grid(axis_name(paper, spec.rows[-1]), columns, blocks, compares, absent=NOT_PREPARED),
        notes=_notes(facts, compares, doubts),
        rows=pd.DataFrame([{"paper": paper.key, "table": name, **row} for row in rows]),
        provenance=origin(plan, name, f"data of seed {plan.seeds[0]}", partitions=facts.keys),
    )


def _counted(
    paper: Paper, axes: Axes, facts: Facts, print_: PublishedTable | None
) -> tuple[list[tuple[At, Entry]], list[dict[str, Any]]]:
    """Return what stands at each place, and the rows of the CSV."""
    said, rows = list[tuple[At, Entry]](), []
    where = {axis: values for axis, values in axes.items() if axis != "metric"}
    prints = print_.at(where, [*map(str, axes["metric"])]) if print_ else {}
    for values in itertools.product(*axes.values()):
        place = dict(zip(axes, values, strict=True))
        metric = str(place["metric"])
        printed = prints.get((tuple(place.items())[:-1], metric))
        value = facts.value(place)
        entry = _entry(value, printed, paper.measure(metric).decimals)
        said.append((place, entry))
        varying = {a: v for a, v in place.items() if len(axes[a]) > 1 or a in ("dataset", "metric")}
        equal = entry.symbol == EQUAL if entry.symbol else ""
        rows.append({**varying, "value": value, "published": entry.printed, "equal": equal})
    return said, rows


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


def _notes(facts: Facts, compares: bool, doubts: Sequence[str]) -> list[str]:
    lines = [f"Ours: counted from the data as prepared here (seed {facts.plan.seeds[0]})."]
    if compares:
        lines[0] += f" Paper: as published. {EQUAL} equal in the published digits, {DIFFERENT} not."
    if facts.elsewhere:
        lines.append(f"{', '.join(facts.elsewhere)}: counted elsewhere, as reproduced/facts.csv says.")
    if facts.missing:
        lines.append(f"{', '.join(facts.missing)}: `fedbench doctor` says what is needed.")
    return lines + ([f"†: {'. '.join(dict.fromkeys(doubts))}."] if doubts else [])
