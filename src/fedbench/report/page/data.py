"""What the report page shows, gathered from disk: a chapter per paper and scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedbench.jobs.progress import whereabouts
from fedbench.plan.cells import Cell
from fedbench.plan.configuration import CONFIG_DIR, load_config, paper_keys
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config, Paper, Scale, TableSpec, Value
from fedbench.report.figures import build as figures
from fedbench.report.figures.build import Drawing
from fedbench.report.files import REPRODUCED
from fedbench.report.numbers import compare, described, shipped_curves
from fedbench.report.numbers.logs import log_of
from fedbench.report.numbers.names import ABSENT, DECIMALS
from fedbench.report.numbers.origin import provenance
from fedbench.report.numbers.rows import NOT_RUN, Compared, records
from fedbench.report.page.cells import CellView, Number
from fedbench.report.page.states import ELSEWHERE, STATES, State, counted, state_of
from fedbench.report.tables import build as tables
from fedbench.report.tables import claims as claim_tables
from fedbench.report.tables.claims import ClaimTable
from fedbench.report.tables.document import Table
from fedbench.report.tables.layout import Entry
from fedbench.report.tables.results import state_text
from fedbench.store.runs import Store

RESULTS = Path("results", "cells")
Place = tuple[tuple[str, Value], ...]
Views = dict[Place, CellView]
Listed = tuple[CellView | None, Number]
"""A number and the cell behind it, None where the scale has none."""


@dataclass(frozen=True)
class TableView:
    """A table with the cells behind its numbers."""

    table: Table
    views: Views

    @property
    def entries(self) -> list[Entry]:
        """All places of the table that compare something."""
        return [entry for entry in self.table.grid.entries if entry.item]

    @property
    def states(self) -> dict[str, int]:
        """How many numbers are in which case."""
        return counted(self.state(entry) for entry in self.entries)

    @property
    def run(self) -> bool:
        """Whether there is anything of ours in it."""
        return any(name not in (ELSEWHERE, NOT_RUN) for name in self.states)

    @property
    def shipped(self) -> int:
        """How many numbers came with the repository and were not trained here."""
        return sum(bool(entry.item and entry.item.shipped) for entry in self.entries)

    @property
    def numbers(self) -> list[Listed]:
        """Each number that the scale has, trained here, shipped or not run, with the cell behind it."""
        return [
            (self.cell(entry), Number(entry, entry.item, state, self.table.name))
            for entry in self.entries
            if entry.item and (state := self.state(entry)).name != ELSEWHERE
        ]

    def cell(self, entry: Entry) -> CellView | None:
        """Return the cell behind an entry, None where the scale has none."""
        return self.views.get(_place(entry.item.at)) if entry.item and entry.item.of_scale else None

    def state(self, entry: Entry) -> State:
        """Return the case of an entry."""
        behind = self.cell(entry)
        if entry.item is None:
            return STATES[ELSEWHERE]
        return behind.numbers[entry.item.metric].state if behind else state_of(entry.item)

    def text(self, entry: Entry) -> str:
        """Return what stands for ours: the number, or a word for what became of it."""
        state = self.state(entry)
        return state.name if entry.value == ABSENT and state.css in ("failed", "partial") else entry.value


@dataclass(frozen=True)
class Chapter:
    """One paper at one scale; ``claims`` are with the first chapter of a paper, None with others.

    ``changed`` says what the call sets in all runs, empty where it sets nothing.
    """

    paper: Paper
    scale: Scale
    tables: list[TableView]
    figures: list[Drawing]
    views: list[CellView]
    origin: dict[str, Any]
    claims: ClaimTable | None = None
    changed: str = ""

    @property
    def anchor(self) -> str:
        """The chapter's address in the page."""
        return f"{self.scale.name}/{self.paper.key}"

    @property
    def drawn(self) -> list[Listed]:
        """The numbers that figures alone show."""
        names = self.paper.figures
        return [(view, n) for view in self.views for n in view.numbers.values() if n.target in names]

    @property
    def numbers(self) -> list[Listed]:
        """All numbers: of tables, then of figures alone."""
        return [*(row for view in self.tables for row in view.numbers), *self.drawn]

    @property
    def shown(self) -> list[CellView]:
        """The cells that there is more to show of than their names."""
        return [view for view in self.views if view.shown]

    @property
    def wanted(self) -> int:
        """How many runs the scale has."""
        return sum(len(view.runs) for view in self.views)

    @property
    def finished(self) -> int:
        """How many of them are on file, diverged ones included."""
        return sum(run.status != NOT_RUN for view in self.views for run in view.runs)


def studies(config: Config) -> dict[str, list[str]]:
    """List the studies to show with their scales: the configured ones first, then whatever else has results on disk."""
    scales = sorted(path.stem for path in (CONFIG_DIR / "scales").glob("*.yaml"))
    scales.sort(key=lambda scale: scale != config.scale)
    shown = {
        study: [scale for scale in scales if (study, scale) == (config.paper, config.scale)
                or _trained(study, scale) or _shipped(config, study, scale)]
        for study in sorted(paper_keys(), key=lambda study: study != config.paper)
    }  # fmt: skip
    return {study: of_study for study, of_study in shown.items() if of_study}


def chapters(config: Config, study: str, scales: Sequence[str]) -> list[Chapter]:
    """Gather a study at some scales, its claims with the first; what a call sets is for the configured pair alone."""
    file, plan = load_config(), None
    gathered: list[Chapter] = []
    for scale in scales:
        asked = config if (study, scale) == (config.paper, config.scale) else file
        chosen = asked.model_copy(update={"scale": scale, "shipped": config.shipped})
        plan = plan.at(chosen) if plan else Plan(chosen, study)
        gathered.append(chapter(plan, claims=not gathered))
    return gathered


def _trained(paper: str, scale: str) -> bool:
    """Say whether a paper has results on disk at a scale."""
    return any((RESULTS / scale / paper).rglob("*.json"))


def _shipped(config: Config, paper: str, scale: str) -> bool:
    """Say whether numbers of a paper at a scale came with the repository."""
    return config.shipped and (REPRODUCED / scale / f"{paper}.csv").is_file()


def _widened(plan: Plan) -> Plan:
    """Add the datasets with results on disk to those of the scale, unless the user has named some."""
    study, folder = plan.study, RESULTS / plan.scale.name / plan.study.key
    if plan.config.datasets is not None or not folder.is_dir():
        return plan
    run = list(
        dict.fromkeys(dataset for spec in study.targets.values() for dataset, _, _ in plan.places(spec))
    )
    kept = [name for name in study.datasets if (folder / name).is_dir() and name not in run]
    return plan.at(plan.config.model_copy(update={"datasets": [*run, *kept]})) if kept else plan


def chapter(plan: Plan, claims: bool = True) -> Chapter:
    """Gather a study at a scale."""
    plan = _widened(plan)
    paper, scale, config, cells, store = plan.study, plan.scale, plan.config, plan.cells(), Store()
    views = {_place_of(cell): CellView(cell, paper, log_of(cell), whereabouts(cell, store)) for cell in cells}
    made = [_table(plan, name, views) for name in paper.tables]
    drawings = {name: figures.make(plan, name) for name in paper.figures}
    drawn = [
        _figure(plan, name, drawing, views)
        for name, drawing in drawings.items()
        if drawing.content.panels or _trained(paper.key, scale.name)
    ]
    shipped = shipped_curves.load(plan, "curves")
    for view in views.values():
        view.complete(plan, shipped)
    origin = provenance(cells)
    asserted = claim_tables.make(plan) if claims and paper.claims else None
    said = described.changed(config.set)
    return Chapter(paper, scale, made, drawn, list(views.values()), origin, asserted, said)


def _table(plan: Plan, name: str, views: Views) -> TableView:
    shown = TableView(tables.make(plan, name), views)
    for entry in shown.entries:
        behind = shown.cell(entry)
        if behind:
            behind.add(entry, name)
    return shown


def _figure(plan: Plan, name: str, drawing: Drawing, views: Views) -> Drawing:
    """Give cells the numbers of a figure that no table shows, and return it."""
    spec, tables_ = plan.figure(name), plan.study.tables.values()
    shared = spec.model_dump(include={"title", "datasets", "methods", "settings", "metrics"})
    if spec.kind == "duals":  # what it draws are no results: show those of the tables
        shared["metrics"] = next((table.metrics for table in tables_ if table.metrics), [])
    cells = plan.cells(name)
    if all(views[_place_of(cell)].numbers.keys() >= {*shared["metrics"]} for cell in cells):
        return drawing
    for item in records(compare.comparisons(plan, TableSpec(**shared), cells), Compared):
        behind = views.get(_place(item.at)) if item.of_scale else None
        if behind:
            value, spread = state_text(item, DECIMALS)
            behind.add(Entry(value, spread, item=item), name)
    return drawing


def _place(place: Mapping[str, Value]) -> Place:
    """Return what tells the cells of a paper apart, from the axes of a table."""
    return tuple(sorted(place.items()))


def _place_of(cell: Cell) -> Place:
    return _place({"dataset": cell.dataset, **cell.setting, "method": cell.method})
