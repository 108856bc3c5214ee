"""What the report page shows, as its templates read it: chapters of tables, figures, numbers and cells."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fedbench.report import verdict_words
from fedbench.report.claims import ClaimTable
from fedbench.report.document import Table
from fedbench.report.figures.build import Drawing
from fedbench.report.figures.style import styles_of_methods
from fedbench.report.layout import Entry
from fedbench.report.page.curves import Picture
from fedbench.report.page.states import ELSEWHERE, TROUBLE, State, in_order
from fedbench.results import run_facts
from fedbench.results.collect import Log
from fedbench.results.frame import NOT_RUN, Compared
from fedbench.results.names import ABSENT, axis_text
from fedbench.store.record import Record
from fedbench.study.cells import Cell
from fedbench.study.layers import places
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, Scale, Value


@dataclass(frozen=True)
class CellView:
    """A cell and all that one click shows of it; ``where`` its training is, ``command`` trains it alone.

    ``records`` are its runs that were trained here, by seed.
    """

    cell: Cell
    setting: str
    log: Log | None
    where: str
    records: Mapping[int, Record]
    command: str
    numbers: dict[str, Number] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """The address of the cell in the page."""
        return f"{self.cell.scale}/{self.cell.name}"

    @property
    def seconds(self) -> float:
        """Training time of all its seeds, NaN where it is not known."""
        return sum(float(record.provenance.get("seconds", 0)) for record in self.records.values()) or math.nan

    @property
    def trouble(self) -> str:
        """The most urgent thing that keeps a number from being compared, empty where nothing does."""
        names = {number.state.name for number in self.numbers.values()}
        return next((name for name in TROUBLE if name in names), "")

    @property
    def reasons(self) -> list[str]:
        """Why numbers are missing, each reason once."""
        said = [self.where, *(number.item.reason for number in self.numbers.values())]
        return list(dict.fromkeys(filter(None, said)))

    @property
    def files(self) -> list[str]:
        """The files that its numbers were read from, and the log of its training where there is one."""
        sources = [source for number in self.numbers.values() for source in number.item.source.split()]
        return list(dict.fromkeys([*sources, *([str(self.log.path)] if self.log else [])]))

    @property
    def configuration(self) -> dict[str, dict[str, str]]:
        """What its runs have in common, by group, as in YAML; what is unset or empty is left out."""
        spec = self.cell.runs[0].model_dump(mode="json")
        how = {"algorithm": spec["method"], **spec["params"]}
        groups = {"method": how, "training": spec["train"], "data": spec["data"], "network": spec["network"]}
        return {
            name: {
                place: value if isinstance(value, str) else json.dumps(value)
                for place, value in places(group).items()
                if value not in (None, [], {})
            }
            for name, group in groups.items()
        }


@dataclass(frozen=True)
class Number:
    """One number of a ``target`` (a table, else a figure), its case, and the cell behind it, None without one."""

    target: str
    entry: Entry
    state: State
    setting: str
    cell: CellView | None

    @property
    def item(self) -> Compared:
        """Its row of the frame of comparisons."""
        assert self.entry.item is not None
        return self.entry.item

    @property
    def key(self) -> Hashable:
        """Tells it from all other numbers of the paper, at whichever scale."""
        return number_key(self.target, self.item)

    @property
    def counts_as(self) -> str:
        """Its case at its own scale: a number of another scale that a table shows counts there."""
        return self.state.name if self.item.of_scale else ELSEWHERE

    @property
    def text(self) -> str:
        """What stands for ours: the number, or a word for what became of it."""
        says = self.entry.value == ABSENT and self.state.css in ("failed", "partial")
        return self.state.name if says else self.entry.value

    @property
    def seconds(self) -> float:
        """How long all its runs that were trained here took, NaN where it is not known."""
        return self.cell.seconds if self.cell else math.nan

    @property
    def sentence(self) -> str:
        """The verdict in words, the seeds in which nothing was learned, and by how much it still changed."""
        item, said = self.item, self.state.meaning
        if not math.isnan(item.difference):
            half = (
                "" if math.isnan(item.half_width) else f", {verdict_words.LEVEL_TEXT} ±{item.half_width:.2g}"
            )
            said = f"Δ {self.entry.delta}{half}: {said}"
        signs = (
            f"seed {', '.join(map(str, seeds))}: {run_facts.MEANING[sign]}"
            for sign, seeds in item.idle.items()
        )
        moving = ""
        if item.moving:
            fifth = f"{item.moving} in a fifth of it, before step sizes fell if they did"
            moving = f"still changing at the end of training ({fifth})"
        return "; ".join(filter(None, [said, *signs, moving]))


def number_key(target: str, item: Compared) -> Hashable:
    """Return what tells a number of a table from all others of a paper."""
    return target, frozenset(item.at.items()), item.metric


def setting_text(plan: Plan, dataset: str, values: Mapping[str, Value]) -> str:
    """Write what a setting is on a dataset for a reader: ``p = 8 · imratio = 0.1``."""
    told = plan.told(dataset, {name: value for name, value in values.items() if name in plan.study.settings})
    return " · ".join(axis_text(plan.study, name, value) for name, value in told.items())


@dataclass(frozen=True)
class Chapter:
    """One paper at one scale.

    Attributes:
        tables: all tables of the paper.
        figures: those with something to show.
        numbers: of tables, then those that figures alone show, by their keys.
        groups: cells with something to show, those of one dataset and setting together, with their curves.
        claims: with the first chapter of a paper, None with others.
        changed: what the call sets in all runs, empty where it sets nothing.
    """

    paper: Paper
    scale: Scale
    tables: list[Table]
    figures: list[Drawing]
    numbers: dict[Hashable, Number]
    groups: list[tuple[Picture | None, list[CellView]]]
    origin: Mapping[str, object]
    claims: ClaimTable | None
    changed: str

    @property
    def anchor(self) -> str:
        """The chapter's address in the page."""
        return f"{self.scale.name}/{self.paper.key}"

    @cached_property
    def colours(self) -> dict[str, str]:
        """The colours of the methods in figures."""
        return {name: look.colour for name, look in styles_of_methods(self.paper).items()}

    @property
    def cells(self) -> list[CellView]:
        """The cells with something to show."""
        return [cell for _, cells in self.groups for cell in cells]

    def number(self, table: str, entry: Entry) -> Number:
        """Return the number behind what stands in a place of a table."""
        assert entry.item is not None
        return self.numbers[number_key(table, entry.item)]

    @cached_property
    def listed(self) -> list[Number]:
        """The numbers of this scale; one without a published value is listed once, whichever tables show it too."""
        known, listed = set[Hashable](), []
        of_scale = [number for number in self.numbers.values() if number.counts_as != ELSEWHERE]
        for number in sorted(
            of_scale, key=lambda number: not number.item.has_print
        ):  # keeps the order of equals
            of_cell = (number.cell.anchor, number.item.metric) if number.cell else number.key
            if number.item.has_print or of_cell not in known:
                listed.append(number)
            known.add(of_cell)
        order = {name: at for at, name in enumerate([*self.paper.tables, *self.paper.figures])}
        return sorted(listed, key=lambda number: order[number.target])

    def states(self, target: str) -> dict[str, int]:
        """Count the listed numbers of a table or figure by their cases, and what its scale does not run."""
        listed = [number.counts_as for number in self.listed if number.target == target]
        others = [n.counts_as for n in self.numbers.values() if n.target == target and not n.item.of_scale]
        return in_order(Counter([*listed, *others]))

    def shipped(self, target: str) -> int:
        """Count the numbers of a table that came with the repository and were not trained here."""
        return sum(bool(n.item.shipped) for n in self.numbers.values() if n.target == target)

    def ran(self, target: str) -> bool:
        """Whether there is anything of ours in a table."""
        names = {number.state.name for number in self.numbers.values() if number.target == target}
        return bool(names - {ELSEWHERE, NOT_RUN})

    def troubled(self) -> dict[str, Sequence[CellView]]:
        """Return the cells that need a reason by what they are, the most urgent first."""
        kinds = {name: [view for view in self.cells if view.trouble == name] for name in TROUBLE}
        return {name: views for name, views in kinds.items() if views}
