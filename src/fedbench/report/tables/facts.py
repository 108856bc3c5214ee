"""A table of facts about the data, counted from our own preparation and compared with what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.data.summary import Counts, split_counts
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec, Value
from fedbench.report.numbers import described
from fedbench.report.numbers.axes import check_axes
from fedbench.report.numbers.names import ABSENT, axis_name, axis_text, signed
from fedbench.report.numbers.published import Published, PublishedTable, load
from fedbench.report.tables.document import Table, origin
from fedbench.report.tables.fold import NOT_PREPARED
from fedbench.report.tables.layout import WITHIN, At, Block, Entry, Grid, Row, blocks_of, columns_of

EQUAL, DIFFERENT = "=", "≠"


@dataclass
class Facts:
    """Counts a table's facts; each dataset and setting is read once, what is missing is remembered."""

    plan: Plan
    splits: Sequence[str]
    keys: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    _known: dict[tuple[Value, ...], Mapping[str, Counts]] = field(default_factory=dict)

    def value(self, place: Mapping[str, Value]) -> float | None:
        """Return one fact, None where it is not known here."""
        setting = {name: place[name] for name in self.plan.study.settings}
        where = (place["dataset"], *setting.values())
        if where not in self._known:
            self._known[where] = self._read(str(place["dataset"]), setting)
        counts = self._known[where].get(str(place["split"]))
        return None if counts is None else counts.fact(str(place["metric"]))

    def _read(self, dataset: str, setting: Mapping[str, Value]) -> Mapping[str, Counts]:
        method = next(iter(self.plan.study.methods))
        run = self.plan.cell(dataset, setting, method).runs[0]
        counts, reason = split_counts(run.data, run.seed, Path(self.plan.config.data_dir))
        if reason and not {*self.splits} <= counts.keys():
            self.missing[dataset] = reason
        self.keys[f"{dataset} {dict(setting)}"] = run.data.partition_key(run.seed)
        return counts


def make(plan: Plan, name: str) -> Table:
    """Assemble a table of kind ``facts``: what ``metrics`` name, for each dataset, setting and split.

    What is not prepared here keeps its place and the printed value; the notes say why there is none of ours.
    """
    paper, spec = plan.study, plan.table(name)
    axes: dict[str, list[Value]] = {
        "dataset": [*dict.fromkeys([*spec.datasets, *plan.datasets(spec)])],
        **paper.values(spec),
        "split": [*spec.splits],
        "metric": [*spec.metrics],
    }
    check_axes(spec, axes, f"{paper.key}/{name}")
    facts = Facts(plan, spec.splits)
    published = load(paper.key, spec.published, own=paper.measures) if spec.published else None
    builder = _Builder(paper, spec, axes, facts, published)
    grid = builder.grid()
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=grid,
        notes=_notes(facts, builder),
        rows=pd.DataFrame([{"paper": paper.key, "table": name, **row} for row in builder.tidy]),
        provenance=origin(plan, name, f"data of seed {plan.seeds[0]}", partitions=facts.keys),
    )


class _Builder:
    """Arranges facts as the ``rows`` and ``columns`` of the table say."""

    def __init__(
        self,
        paper: Paper,
        spec: TableSpec,
        axes: Mapping[str, Sequence[Value]],
        facts: Facts,
        published: PublishedTable | None,
    ) -> None:
        self.paper, self.spec, self.axes, self.facts, self.published = paper, spec, axes, facts, published
        self.tidy: list[dict[str, Any]] = []

    def grid(self) -> Grid:
        columns = columns_of(self.spec, self.axes)
        blocks = [self._block(*block, columns) for block in blocks_of(self.spec, self.axes, self.axes)]
        names = [", ".join(self._text(*pair) for pair in column.items()) for column in columns]
        header = [(name, 1) for name in names or [self._text("metric", self.spec.metrics[0])]]
        stub = axis_name(self.paper, self.spec.rows[-1])
        return Grid(
            stub, [header], blocks, compares=any(row["published"] for row in self.tidy), absent=NOT_PREPARED
        )

    def _block(self, shared: At, places: Sequence[At], columns: Sequence[At]) -> Block:
        axis = self.spec.rows[-1]
        rows = [
            Row(self._text(axis, place[axis]), [[self._entry({**place, **column}) for column in columns]], [])
            for place in places
        ]
        return Block(WITHIN.join(self._text(*pair) for pair in shared.items()), rows, [])

    def _entry(self, place: Mapping[str, Value]) -> Entry:
        value, found = self.facts.value(place), self._find(place)
        decimals = self.paper.measure(str(place["metric"])).decimals
        if found and found.text:
            decimals = len(found.text.partition(".")[2])
        text = ABSENT if value is None else f"{value:.{decimals}f}"
        printed = found.mean if found else None
        compared = value is not None and printed is not None
        equal = compared and float(text) == printed
        varying = {
            axis: place[axis]
            for axis in self.axes
            if len(self.axes[axis]) > 1 or axis in ("dataset", "metric")
        }
        self.tidy.append(
            {
                **varying,
                "value": value,
                "published": found.text if found else "",
                "equal": equal if compared else "",
            }
        )
        return Entry(
            text,
            printed=found.text if found else "",
            doubtful=bool(found and found.doubt),
            delta=signed(float(text) - printed, decimals)
            if compared and not equal and printed is not None
            else "",
            symbol=(EQUAL if equal else DIFFERENT) if compared else "",
        )

    def _find(self, place: Mapping[str, Value]) -> Published | None:
        if self.published is None:
            return None
        setting = {name: value for name, value in place.items() if name not in ("dataset", "metric")}
        return self.published.find(str(place["dataset"]), "", setting, str(place["metric"]))

    def _text(self, axis: str, value: Value) -> str:
        return str(value) if axis == "split" else axis_text(self.paper, axis, value)


def _notes(facts: Facts, builder: _Builder) -> list[str]:
    lines = [f"Ours: counted from the data as prepared here (seed {facts.plan.seeds[0]})."]
    if any(row["published"] for row in builder.tidy):
        lines[0] += f" Paper: as printed. {EQUAL} equal in the printed digits, {DIFFERENT} not."
    if facts.missing:
        lines.append(f"{', '.join(facts.missing)}: `fedbench doctor` says what is needed.")
    doubts = [value.doubt for value in (builder.published.values if builder.published else []) if value.doubt]
    return lines + ([f"†: {'. '.join(dict.fromkeys(doubts))}."] if doubts else [])
