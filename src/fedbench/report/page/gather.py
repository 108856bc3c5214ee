"""Gathers what the report page shows from disk: a chapter for each paper and scale."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence

from fedbench.report import claims as claim_tables
from fedbench.report import described, tables
from fedbench.report.figures import build as figures
from fedbench.report.figures.build import Drawing
from fedbench.report.layout import Entry
from fedbench.report.page.curves import Picture, chart
from fedbench.report.page.states import TRAINING, state_of
from fedbench.report.page.view import CellView, Chapter, Number, setting_text
from fedbench.report.results_table import state_text
from fedbench.results import collect, compare
from fedbench.results.collect import log_of, provenance
from fedbench.results.frame import Compared, records
from fedbench.results.names import DECIMALS
from fedbench.results.places import place_of
from fedbench.results.published import printed_results
from fedbench.results.shipped import load_curves, path_of
from fedbench.store.cell_files import FOLDER as RESULTS
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config, paper_keys, scale_names
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, TableSpec, Value
from fedbench.train.progress import whereabouts

Views = dict[Hashable, CellView]
"""Cells by their places."""


def studies(config: Config) -> dict[str, list[str]]:
    """List the studies to show with their scales: the configured ones first, then whatever else has results on disk."""
    scales = sorted(scale_names(), key=lambda scale: scale != config.scale)
    shown: dict[str, list[str]] = {}
    for study in sorted(paper_keys(), key=lambda study: study != config.paper):
        for scale in scales:
            asked, lent = (study, scale) == (config.paper, config.scale), path_of(scale, study).is_file()
            if asked or _trained(study, scale) or (config.shipped and lent):
                shown.setdefault(study, []).append(scale)
    return shown


def chapters(config: Config, study: str, scales: Sequence[str]) -> list[Chapter]:
    """Gather a study at some scales, its claims with the first; what a call sets is for the configured pair alone."""
    file, plan = load_config(), Plan(config, study)
    gathered: list[Chapter] = []
    for scale in scales:
        asked = config if (study, scale) == (config.paper, config.scale) else file
        chosen = asked.model_copy(update={"scale": scale, "shipped": config.shipped})
        gathered.append(chapter(plan.at(chosen), claims=not gathered))
    return gathered


def _trained(paper: str, scale: str) -> bool:
    """Say whether a paper has results on disk at a scale."""
    return any((RESULTS / scale / paper).rglob("*.json"))


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
    study, cells = plan.study, plan.cells()
    views: Views = {_place_of(cell): _view(plan, cell) for cell in cells}
    made = [tables.table_of(plan, name) for name in study.tables]
    numbers = [
        _number(plan, views, table.name, entry)
        for table in made
        for entry in table.grid.entries
        if entry.item
    ]
    drawn, trained = [], _trained(study.key, plan.scale.name)
    for name in study.figures:
        drawing = figures.drawing_of(plan, name)
        if drawing.content.panels or trained:
            drawn.append(drawing)
            numbers += _of_figure(plan, drawing, views)
    return Chapter(
        paper=study,
        scale=plan.scale,
        tables=made,
        figures=drawn,
        numbers={number.key: number for number in numbers},
        groups=_groups(plan, list(views.values())),
        origin=provenance(cells),
        claims=claim_tables.claim_table(plan) if claims and study.claims else None,
        changed=described.changed(plan.config.set),
    )


def _view(plan: Plan, cell: Cell) -> CellView:
    """Read what a click on a cell shows, but its numbers and curves."""
    setting, records = setting_text(plan, cell.dataset, cell.setting), collect.runs_of(cell).records
    return CellView(cell, setting, log_of(cell), whereabouts(cell, Store()), records, plan.command(cell))


def _number(plan: Plan, views: Views, target: str, entry: Entry) -> Number:
    """Return what stands in a place; its cell keeps the one number of each metric that has a published value."""
    item = entry.item
    assert item is not None
    view = views.get(frozenset(item.at.items())) if item.of_scale else None
    without = view.log.says if view and view.log else ""
    if view and view.where:
        without = TRAINING
    setting = setting_text(plan, str(item.at["dataset"]), item.at)
    number = Number(target, entry, state_of(item, without), setting, view)
    if view is not None:
        known = view.numbers.get(item.metric)
        if known is None or (item.has_print and not known.item.has_print):
            view.numbers[item.metric] = number
    return number


def _of_figure(plan: Plan, drawing: Drawing, views: Views) -> Iterator[Number]:
    """Yield the numbers of cells of a figure that no table shows."""
    name = drawing.name
    spec, tables_ = plan.figure(name), plan.study.tables.values()
    shared = spec.model_dump(include={"title", "datasets", "methods", "settings", "metrics"})
    if spec.kind == "duals":  # what it draws are no results: show those of the tables
        shared["metrics"] = next((table.metrics for table in tables_ if table.metrics), [])
    cells = plan.cells(name)
    if all(views[_place_of(cell)].numbers.keys() >= {*shared["metrics"]} for cell in cells):
        return
    for item in records(compare.comparisons(plan, TableSpec(**shared), cells), Compared):
        behind = views.get(frozenset(item.at.items())) if item.of_scale else None
        if behind and item.metric not in behind.numbers:
            yield _number(plan, views, name, Entry(*state_text(item, DECIMALS), item=item))


def _groups(plan: Plan, views: Sequence[CellView]) -> list[tuple[Picture | None, list[CellView]]]:
    """Return the cells that there is more to show of than their names, by dataset and setting, with their curves."""
    shown = [view for view in views if view.numbers or view.log or view.where or view.records]
    by_place: dict[Hashable, list[CellView]] = {}
    for view in shown:
        by_place.setdefault(place_of(view.cell.dataset, view.cell.setting), []).append(view)
    shipped = load_curves(plan, "curves")
    printed = printed_results(plan.study)

    def curves(views: Sequence[CellView]) -> Picture | None:
        ran = [v for v in views if v.records or any(run.key in shipped for run in v.cell.runs)]
        metrics = [*dict.fromkeys(itertools.chain.from_iterable(view.numbers for view in ran))]
        cells = [view.cell for view in ran]
        return chart(plan.study, cells, metrics, printed, shipped) if ran else None

    return [(curves(of_place), of_place) for of_place in by_place.values()]


def _place_of(cell: Cell) -> frozenset[tuple[str, Value]]:
    """Return what tells the cells of a paper apart, as the axes of a table do."""
    return frozenset({"dataset": cell.dataset, **cell.setting, "method": cell.method}.items())
