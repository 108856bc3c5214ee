"""Metrics that tables and figures ask of cells whose runs will not have them: found before a night of training."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fedbench import measures, tasks
from fedbench.data.sites import site_names
from fedbench.errors import UserError, unknown
from fedbench.plan.cells import Cell, resolve
from fedbench.plan.configuration import load_paper, load_scale
from fedbench.plan.schema import FigureSpec, Paper, TableSpec
from fedbench.specs import RunSpec
from fedbench.tasks import detailed

Classes = Callable[[RunSpec], int | None]
"""Returns how many classes a run's labels have, None before it is known."""


def mistakes(cells: Iterable[Cell], classes: Classes) -> Iterator[str]:
    """Say which metrics the tables and figures of some cells ask for that no run will have, and what there is instead.

    A table of several tasks has columns for each: a metric is a mistake where no task in it has the metric, or where
    a dataset that it lists has none of those that are asked for. One that is added to every table is a mistake where
    no table that shows it has anything for it.
    """
    by_paper: dict[str, list[Cell]] = {}
    for cell in cells:
        by_paper.setdefault(cell.paper, []).append(cell)
    for key, asked in by_paper.items():
        paper = load_paper(key)
        said_of: dict[str, list[list[str]]] = {}
        for kind, specs in (("tables", paper.tables), ("figures", paper.figures)):
            for name, spec in specs.items():
                wanted = [metric for metric in spec.metrics if _on_part(metric)]
                shown = [cell for cell in asked if _shows(paper, spec, cell)]
                if not (shown and wanted):
                    continue
                place = f"config/papers/{key}.yaml: {kind}.{name}.metrics: "
                runs = _one_each(paper, spec, shown)
                datasets = list(dict.fromkeys(cell.dataset for cell in shown))
                for said in _unavailable_metrics(wanted, spec.datasets, datasets, runs, classes):
                    yield place + said
                for dataset in datasets:
                    lines = _nothing(wanted, dataset, runs[dataset], classes)
                    said_of.setdefault(dataset, []).append([place + line for line in lines])
        for tables in said_of.values():
            if all(tables):
                yield from dict.fromkeys(itertools.chain(*tables))


def _nothing(wanted: Sequence[str], dataset: str, runs: Sequence[RunSpec], classes: Classes) -> list[str]:
    """Say why runs on a dataset have nothing of what is wanted; empty where they have, or it is not known."""
    if any(not lacks(run, metric, classes) for run in runs for metric in wanted):
        return []
    return [lacks(runs[0], metric, classes).format(metric=metric, dataset=dataset) for metric in wanted]


def _one_each(paper: Paper, spec: TableSpec | FigureSpec, shown: Sequence[Cell]) -> dict[str, list[RunSpec]]:
    """Return, for each dataset of a table or figure, a run of the cells asked for and one of each task of its methods.

    Trained now or not: a control with a task of its own is not alone in its table.
    """
    first = shown[0]
    scale = load_scale(first.scale)
    by_dataset: dict[str, list[RunSpec]] = {}
    for cell in shown:
        by_dataset.setdefault(cell.dataset, []).append(cell.runs[0])
    for dataset in dict.fromkeys([*by_dataset, *spec.datasets]):
        place = {"dataset": dataset, **first.setting}
        methods = [name for name in spec.methods if paper.methods[name].has(place)]
        for method in {repr(paper.methods[name].task): name for name in methods}.values():
            with contextlib.suppress(UserError):  # it is said when that one is asked for
                run = resolve(paper, scale, dataset, first.setting, method)
                by_dataset.setdefault(dataset, []).append(run)
    return by_dataset


def _unavailable_metrics(
    wanted: Sequence[str],
    listed: Sequence[str],
    asked: Sequence[str],
    runs: Mapping[str, Sequence[RunSpec]],
    classes: Classes,
) -> Iterator[str]:
    """Say which wanted metrics no run has, and which of the ``asked`` datasets that are ``listed`` have none of it.

    Methods may have tasks of their own, so the ``runs`` of all tasks on a dataset count.
    """
    everyone = [*itertools.chain(*runs.values())]
    unavailable = [metric for metric in wanted if all(lacks(run, metric, classes) for run in everyone)]
    for dataset in asked:
        if dataset in listed and (said := _nothing(wanted, dataset, runs[dataset], classes)):
            yield from said
        else:
            for metric in unavailable:
                yield lacks(runs[dataset][0], metric, classes).format(metric=metric, dataset=dataset)


def _shows(paper: Paper, spec: TableSpec | FigureSpec, cell: Cell) -> bool:
    """Say whether a table or figure shows a cell. Datasets that are not listed enter as additions or stand-ins."""
    if cell.method not in spec.methods:
        return False
    if isinstance(spec, TableSpec) and cell.dataset not in spec.datasets:
        additions = spec.additions
        if paper.datasets[cell.dataset].printed or not (additions is None or cell.dataset in additions):
            return False
    return all(value in paper.values(spec)[name] for name, value in cell.setting.items())


def _on_part(metric: str) -> tuple[str, str] | None:
    """Return the part and the metric on it, ``("test", "auc")``; None for what is no task's, such as floats sent."""
    if target := measures.target(metric):
        metric = target[0]
    metric = metric.partition("@")[0]
    for prefix in measures.DEVICES | measures.SITES:
        metric = metric.removeprefix(prefix)
    for suffix in measures.POINTS:
        metric = metric.removesuffix(suffix)
    part, _, name = metric.partition("_")
    return (part, name) if part in ("test", "val") else None


def lacks(run: RunSpec, metric: str, classes: Classes) -> str:
    """Say why a run will not have a metric, with places for its name and the dataset's; empty if it will."""
    part, name = _on_part(metric) or ("", "")
    if said := _lacks_site(run, metric):
        return said
    if part == "val" and not run.data.held_out:
        return "{metric} needs a validation part of {dataset}: give data.validation"
    n_classes = classes(run)
    if n_classes is None:
        return ""
    task = tasks.make(run.task)
    measured = task.measured(n_classes, run.train)
    if name in measured:
        return ""
    label = run.task.name if run.task else tasks.DEFAULT
    text = f"{{metric}} is not measured on {{dataset}} ({n_classes} classes): task {label!r} measures "
    text += ", ".join(f"{part}_{each}" for each in measured)
    if name in detailed.NAMES or name.startswith("recall_"):
        text += "; task 'detailed' measures more, see docs/task.md"
    return text


def _lacks_site(run: RunSpec, metric: str) -> str:
    """Likewise of a metric at a site, or over the sites."""
    asked = (measures.target(metric) or (metric,))[0]
    _, at, site = asked.partition("@")
    if not at and not asked.startswith(tuple(measures.SITES)):
        return ""
    spec = run.data
    if spec.sources and spec.tests == "own":
        return "{metric} needs test samples of each site: give data.tests: all"
    sites = site_names(spec.datasets)
    if sites is None or site in sites or (sites and not at):
        return ""  # in order, or not known yet
    if not sites:
        return "{metric} needs the site of each sample of {dataset}: name its column with `site:`"
    said = str(unknown("site of @", site, sites)).replace("{", "{{").replace("}", "}}")
    return said.replace("@", "{dataset}", 1)
