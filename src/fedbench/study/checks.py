"""Mistakes in a study's file that are known before anything runs: names of what is not there, and what fits no cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.study.claims import BEST_OTHER, ClaimSpec
from fedbench.study.layers import LENGTHS
from fedbench.study.schema import COURSE, FigureSpec, Paper, ScalePaper, TableSpec, Value
from fedbench.study.unread import unread

AXES = ("dataset", "method", "metric")
"""What varies in tables and figures besides settings."""
Names = tuple[str, str, Iterable[str], Iterable[str]]
"""A part of a study, the kind of thing that it names, the names, and those there are."""


def unknown_names(paper: Paper) -> Iterator[str]:
    """Say which parts of a study name something that it does not define."""
    for names in (_of_targets(paper), _of_entries(paper), _of_claims(paper)):
        for place, kind, used, defined in names:
            known = [*defined]
            yield from (f"{place}: {unknown(kind, item, known)}" for item in used if item not in known)


def _of_targets(paper: Paper) -> Iterator[Names]:
    """List what tables and figures name."""
    for name, spec in paper.targets.items():
        yield name, "dataset", spec.datasets, paper.datasets
        yield name, "method", spec.methods, paper.methods
        yield name, "setting", spec.settings, paper.settings
    for name, figure in paper.figures.items():
        yield name, "panels of a figure", figure.panel_axes, [*AXES, *paper.settings]
        x = [*paper.settings] if figure.kind == "final" else COURSE
        yield name, f"x of a figure of kind {figure.kind}", [figure.x], x
    for name, table in paper.tables.items():
        yield f"{name}: additions", "dataset", table.additions or [], paper.datasets
        yield f"{name}: pool", "setting", table.pool, paper.settings
        yield f"{name}: board", "method", table.board.controls if table.board else [], table.methods
        yield name, "row or column", [*table.rows, *table.columns], [*AXES, "split", *paper.settings]


def _of_entries(paper: Paper) -> Iterator[Names]:
    """List what settings, scales, methods and tuning name."""
    for name, what in paper.settings.items():
        yield f"{name}: datasets", "dataset", what.datasets, paper.datasets
    for name, plan in paper.scales.items():
        yield f"scales: {name}", "setting", plan.settings, paper.settings
    # a method of the base may have values that no table of this study shows
    defined = paper.defined.get("methods", []) if paper.extends else paper.methods
    for at, (name, method) in enumerate(paper.methods.items()):
        earlier = [*paper.methods][:at]
        yield f"{name}: twin", "earlier method", [method.twin.of] if method.twin else [], earlier
        for part, chosen in (("only", method.only), ("at", method.at)):
            yield f"{name}: {part}", "setting", chosen, ["dataset", *paper.settings]
            for setting, values in chosen.items() if name in defined else ():
                yield f"{name}: {part}: {setting}", "value", map(str, values), _values(paper, setting)
    if paper.tune is not None:
        yield "tune", "dataset", paper.tune.per_dataset, paper.datasets
        short = [name for stable in paper.tune.stables() for name in stable.setting]
        yield "tune", "setting", [*paper.tune.setting, *short, *paper.tune.each], paper.settings


def _of_claims(paper: Paper) -> Iterator[Names]:
    """List what claims name."""
    yield "proposes", "method", paper.proposes, paper.methods
    for place, claim in _claims(paper):
        yield place, "table or figure", claim.targets, paper.targets
        yield place, "method", claim.methods(), paper.methods
        for name, values in (*claim.only.items(), *claim.settings()):
            yield place, "setting", [name], ["dataset", *paper.settings]
            yield place, f"value of {name}", map(str, values), _values(paper, name)


def _claims(paper: Paper) -> Iterator[tuple[str, ClaimSpec]]:
    return ((f"claims: {number} ({claim.says})", claim) for number, claim in enumerate(paper.claims, 1))


def _values(paper: Paper, setting: str) -> set[str]:
    """Collect the values that a setting takes anywhere in a study; those of ``dataset`` are its datasets."""
    if setting == "dataset":
        return {*paper.datasets}
    entry = paper.settings[setting]
    shown = {value for spec in paper.targets.values() for value in spec.settings.get(setting, [])}
    tried = {paper.tune.setting[setting]} if paper.tune and setting in paper.tune.setting else set()
    return {str(value) for value in {entry.default, *entry.values, *shown, *tried}}


def mistakes(paper: Paper) -> Iterator[str]:
    """Say what fits no cell of a study that has all that it names, and which metrics nothing measures."""
    for name, spec in paper.targets.items():
        yield from _impossible(paper, name, spec)
    for name, table in paper.tables.items():
        if twice := _twice([*table.rows, *table.columns]):
            yield f"{name}: {', '.join(twice)} is in rows and columns twice; name each once"
    for name, figure in paper.figures.items():
        if figure.kind == "final":
            yield from _not_numeric(paper, name, figure)
        if figure.kind != "pareto" and len(figure.datasets) > 1 and "dataset" not in figure.panel_axes:
            yield f"{name}: several datasets need panels: dataset"
    places = {place: name for name, entry in paper.settings.items() for place in entry.sets}
    for name, entry in paper.methods.items():
        tried = {part for key in entry.grid for part in key.split(", ")}
        for place in sorted(tried & places.keys()):
            yield f"{name}: grid: {place} is what the setting {places[place]} sets, so that tuning it changes no cell"
    for place, claim in _claims(paper):
        yield from (f"{place}: {reason}" for reason in _unanswerable(paper, claim))
    yield from _unmeasured(paper)


def _unanswerable(paper: Paper, claim: ClaimSpec) -> Iterator[str]:
    """Say why no numbers of its tables and figures could answer a claim."""
    specs, where = {name: paper.targets[name] for name in claim.targets}, ", ".join(claim.targets)
    shown = {method for spec in specs.values() for method in spec.methods}
    named = {*claim.only, *dict(claim.settings())}
    for name, spec in specs.items():
        if spec.kind == "facts":
            yield f"{name} shows datasets, not results"
        if pooled := sorted(named & {*getattr(spec, "pool", [])}):
            yield f"{name} pools {pooled[0]}, so that it shows none of its values; name another table"
    if hidden := [method for method in claim.methods() if method not in shown]:
        yield f"{where} does not show {hidden[0]}; add it to its methods"
    if (claim.exists or (claim.trend and BEST_OTHER in (claim.trend.gap or []))) and len(shown) < 2:
        yield f"{where} shows no other method; add one to its methods"

    def asked(axis: str) -> list[Value]:
        return [value for spec in specs.values() for value in _asked(paper, spec, axis)]

    for setting, wanted in (*claim.only.items(), *claim.settings()):
        has = [*dict.fromkeys(map(str, asked(setting)))]
        if absent := [value for value in map(str, wanted) if value not in has]:
            yield f"{where} does not show {setting} {absent[0]}, only {_words(has)}"
    if claim.trend and len({*asked(claim.trend.along)}) < 2:
        yield f"{where} has one {claim.trend.along} only, so there is no trend to judge"
    if claim.ratio and (axis := claim.ratio.largest):
        values = [*asked(axis), claim.ratio.of]
        if wrong := [value for value in values if isinstance(value, str | bool) or not value or value < 0]:
            yield f"largest: {axis} takes {wrong[0]}; its values have to be positive numbers, whose ratio is asked"


def _impossible(paper: Paper, name: str, spec: TableSpec | FigureSpec) -> Iterator[str]:
    """Say what a table or figure names twice, which of its methods have no cell, and which settings change nothing."""
    listed = {field: getattr(spec, field) for field in ("datasets", "methods", "metrics")}
    for field, values in {**listed, **spec.settings}.items():
        if twice := _twice(values):
            yield f"{name}: {field}: {', '.join(twice)} is listed twice; name each once"
    for method in spec.methods:
        for setting, values in paper.methods[method].only.items():
            asked = _asked(paper, spec, setting)
            if not set(asked) & set(values):
                yield f"{name}: {method} has only {setting} {_words(values)}, not {_words(asked)}"
    datasets = [*map(str, _asked(paper, spec, "dataset"))]
    for setting, values in spec.settings.items():
        varies = {*values} - {paper.settings[setting].default}
        if varies and datasets and all(setting in unread(paper, dataset) for dataset in datasets):
            yield f"{name}: settings: {setting} changes nothing on {_words(datasets)}; leave it out"


def _unmeasured(paper: Paper) -> Iterator[str]:
    shown = [(f"tables.{name}.metrics", spec.metrics) for name, spec in paper.tables.items()]
    shown += [(f"figures.{name}.metrics", spec.metrics) for name, spec in paper.figures.items()]
    shown += [("tune.metric", [paper.tune.metric])] if paper.tune else []
    shown += [(place, [claim.metric]) for place, claim in _claims(paper)]
    for place, metrics in shown:
        for metric in metrics:
            try:
                paper.measure(metric)
            except UserError as error:
                yield f"{place}: {error}"
            if metric.startswith("worst_site_") and paper.contrary(metric):
                name = metric.removeprefix("worst_site_")
                yield (
                    f"{place}: {metric} is the least of its sites, and of {name} lower is better: show "
                    f"{name}@sites, or let the task measure its negative"
                )


def lost_length(paper: Paper, scale: str, shorter: ScalePaper, dataset: str) -> str:
    """Say where the scale of the base gives another length of training than a dataset that a study adds asks for."""
    entry = paper.datasets[dataset]
    added = paper.extends and dataset in paper.defined.get("datasets", [])
    if not added or paper.scales or entry.fixed.get("train"):
        return ""
    pieces = entry.train, {**shorter.train, **shorter.per_dataset.get(dataset, {})}
    asked, given = ({name: train[name] for name in LENGTHS if train.get(name)} for train in pieces)
    if not given or asked.items() <= given.items():
        return ""
    kept, shown = (", ".join(f"{key}: {value}" for key, value in of.items()) for of in (asked, given))
    return (
        f"datasets.{dataset}.train: {kept} gives way to {shown} of scale {scale}; to keep it, write "
        f"`fixed: {{train: {{{kept}}}}}` (and `null` for another key)"
    )


def _twice(names: list[Value]) -> list[str]:
    """Return the names or values that stand in a list more than once."""
    return sorted({str(name) for name in names if names.count(name) > 1})


def _asked(paper: Paper, spec: TableSpec | FigureSpec, axis: str) -> list[Value]:
    """Return the values of a setting, or the datasets, that a table or figure asks for."""
    if axis == "dataset":
        return [*spec.datasets, *(getattr(spec, "additions", None) or [])]
    return spec.settings.get(axis, [paper.settings[axis].default])


def _not_numeric(paper: Paper, name: str, figure: FigureSpec) -> Iterator[str]:
    if words := [value for value in _asked(paper, figure, figure.x) if isinstance(value, bool | str)]:
        yield f"{name}: x: {figure.x} takes {_words(words)} here, which is no number to draw against"
    if figure.x in figure.panel_axes:
        yield f"{name}: {figure.x} is x and panels; name it once"


def _words(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))
