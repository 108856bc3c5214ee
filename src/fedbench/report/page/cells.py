"""One cell as the report page shows it: its numbers, curves, runs, configuration, log and command."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.plan.layers import places
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, Value
from fedbench.report.figures.style import style_of
from fedbench.report.numbers import collect, rule
from fedbench.report.numbers.logs import Log
from fedbench.report.numbers.names import axis_text
from fedbench.report.numbers.rows import DIVERGED, NOT_RUN, Compared
from fedbench.report.page.curves import Columns, Line, chart, read_curve
from fedbench.report.page.states import TRAINING, TROUBLE, State, state_of
from fedbench.report.tables.layout import Entry
from fedbench.results import idle
from fedbench.store.record import Record
from fedbench.store.runs import Store

LOSS = "train_loss"


@dataclass(frozen=True)
class Number:
    """One number of a cell: what a table prints of it, its row of the frame, its case, and where the table is."""

    entry: Entry
    item: Compared
    state: State
    target: str

    @property
    def metric(self) -> str:
        """The metric as a reader calls it."""
        return str(self.item.label)

    @property
    def reason(self) -> str:
        """Why there is no full mean, empty where there is one."""
        return str(self.item.reason)

    @property
    def idle(self) -> str:
        """Name the seeds in which nothing was learned and what shows it, empty where there are none."""
        seeds_by_sign = self.item.idle.items()
        return "; ".join(
            f"seed {', '.join(map(str, seeds))}: {idle.MEANING[word]}" for word, seeds in seeds_by_sign
        )

    @property
    def moving(self) -> str:
        """Say by how much it still changed when training ended, empty where that is no matter."""
        change, when = self.item.moving, "in a fifth of it, before step sizes fell"
        return f"still changing at the end of training ({change} {when})" if change else ""

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        said, width = [self.state.meaning], self.item.half_width
        if not math.isnan(self.item.difference):
            half = "" if math.isnan(width) else f", {rule.LEVEL_TEXT} ±{width:.2g}"
            said = [f"Δ {self.entry.delta}{half}: {self.state.meaning}"]
        return "; ".join(filter(None, [*said, self.idle, self.moving]))


@dataclass(frozen=True)
class Run:
    """One seed of a cell, as the store has it."""

    seed: int
    key: str
    status: str
    reason: str
    metrics: dict[str, float | None]
    made: dict[str, Any]
    curve: Columns

    @property
    def seconds(self) -> float:
        """How long it trained, NaN where the store does not say."""
        return float(self.made.get("seconds", math.nan))

    @property
    def sent(self) -> str:
        """How much all clients together sent and received, where the curve counts it."""
        sides = [self.curve.get(name) for name in ("floats_up", "floats_down")]
        return " / ".join(f"{4 * side[-1] / 1e6:.3g}" for side in sides if side)


@dataclass
class CellView:
    """A cell and all that one click shows of it."""

    cell: Cell
    paper: Paper
    log: Log | None
    where: str
    numbers: dict[str, Number] = field(default_factory=dict)
    charts: list[Markup] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    command: str = ""

    @property
    def anchor(self) -> str:
        """The address of the cell in the page."""
        return f"{self.cell.scale}/{self.cell.name}"

    @property
    def setting(self) -> str:
        """The setting as a reader writes it."""
        return setting_text(self.paper, self.cell.setting)

    @property
    def colour(self) -> str:
        """The colour of its method in figures."""
        return style_of(self.cell.method).colour

    @property
    def shown(self) -> bool:
        """Whether there is anything to show of it but its name."""
        return bool(self.numbers or self.log or self.where or self.trained)

    @property
    def trained(self) -> bool:
        """Whether any of its runs is here."""
        return any(run.status != NOT_RUN for run in self.runs)

    @property
    def seconds(self) -> float:
        """Training time of all its seeds, NaN where nothing ran."""
        known = [run.seconds for run in self.runs if math.isfinite(run.seconds)]
        return sum(known) if known else math.nan

    @property
    def trouble(self) -> str:
        """The most urgent thing that keeps a number from being compared, empty where nothing does."""
        names = {number.state.name for number in self.numbers.values()}
        return next((name for name in TROUBLE if name in names), "")

    @property
    def files(self) -> list[str]:
        """The files that its numbers were read from, and the log of its training where there is one."""
        sources = [source for number in self.numbers.values() for source in number.item.source.split()]
        return list(dict.fromkeys([*sources, *([str(self.log.path)] if self.log else [])]))

    @property
    def reasons(self) -> list[str]:
        """Why numbers are missing, each reason once."""
        said = [self.where, *(number.reason for number in self.numbers.values())]
        return list(dict.fromkeys(filter(None, said)))

    @property
    def configuration(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What its runs have in common: groups of (key, value), nothing that is not set."""
        spec = self.cell.runs[0].model_dump(mode="json")
        how = {"algorithm": spec["method"], **spec["params"]}
        groups = {"method": how, "training": spec["train"], "data": spec["data"], "network": spec["network"]}
        return [(name, written(group)) for name, group in groups.items()]

    def add(self, entry: Entry, target: str) -> None:
        """Take a number over from a table or figure; one that has a published value wins."""
        item = entry.item
        if item is None:
            return
        known = self.numbers.get(item.metric)
        if known is None or (item.has_print and not known.item.has_print):
            says = TRAINING if self.where else self.log.says if self.log else ""
            state = state_of(item, says)
            self.numbers[item.metric] = Number(entry, item, state, target)

    def complete(self, plan: Plan, shipped: collect.Tables) -> None:
        """Read what a click shows: runs and curves, ``shipped`` where the store has none, and the command."""
        records = collect.runs_of(self.cell).records
        self.runs = [run_of(spec.seed, spec.key, records.get(spec.seed)) for spec in self.cell.runs]
        x = "round" if self.cell.runs[0].train.rounds is not None else "iteration"
        printed = {metric: number.item.printed for metric, number in self.numbers.items()} | {LOSS: math.nan}
        for metric, value in printed.items():
            lines = [line_of(run, shipped, x, metric) for run in self.runs]
            self.charts += filter(None, [chart(lines, metric, x, style_of(self.cell.method), value)])
        self.command = plan.command(self.cell)


def line_of(run: Run, shipped: collect.Tables, x: str, metric: str) -> Line:
    """Return one metric over the training of a run, trained here or ``shipped``."""
    if run.curve or run.key not in shipped:
        return Line.of(run.seed, run.curve, x, metric, run.status == DIVERGED)
    table = shipped[run.key]
    curve = {name: table[name].tolist() for name in (x, metric) if name in table}
    return Line.of(run.seed, curve, x, metric, bool((table["status"] == DIVERGED).any()))


def setting_text(paper: Paper, setting: Mapping[str, Value]) -> str:
    """Write a setting for a reader: ``p = 8 · imratio = 0.1``."""
    return " · ".join(axis_text(paper, name, value) for name, value in setting.items())


def run_of(seed: int, key: str, record: Record | None) -> Run:
    """Return what the page shows of one seed."""
    if record is None:
        return Run(seed, key, NOT_RUN, "", {}, {}, {})
    curve = Columns()
    with contextlib.suppress(UserError):  # a damaged curve is not shown, its run's record is whole
        curve = read_curve(Store().table(key, "curve.csv") or b"")
    return Run(seed, key, record.status, record.reason, record.metrics, record.provenance, curve)


def written(piece: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the places of a specification with their values as in YAML; what is unset or empty is left out."""
    return [
        (place, value if isinstance(value, str) else json.dumps(value))
        for place, value in places(piece).items()
        if value not in (None, [], {})
    ]


def troubled(views: Sequence[CellView]) -> dict[str, list[CellView]]:
    """Return the cells that need a reason by what they are, the most urgent first."""
    kinds = {name: [view for view in views if view.trouble == name] for name in TROUBLE}
    return {name: found for name, found in kinds.items() if found}
