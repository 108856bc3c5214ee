"""Settings that change nothing on a dataset: it fixes what they set, or the rule of its data does not read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedbench.spec import DataSpec, Spec
from fedbench.study.entries import SettingEntry
from fedbench.study.layers import merged, nested, places
from fedbench.study.schema import Paper

Run = dict[str, Any]


def unread(paper: Paper, dataset: str) -> frozenset[str]:
    """Return the settings of a study that change no run on a dataset, whatever their values.

    A mark is laid in the places that a setting sets, among marks of the other settings: where no run reads it, the
    setting changes nothing. One that is tuned value by value, or by which a method changes, does.
    """
    held = {name: entry for name, entry in paper.settings.items() if entry.holds(dataset)}
    changing = {
        *(paper.tune.each if paper.tune else ()),
        *(name for how in paper.methods.values() for name in how.at),
    }
    of_data, pieces = paper.datasets[dataset], [how.piece() for how in paper.methods.values()]
    pieces = [piece for at, piece in enumerate(pieces) if piece not in pieces[:at]]
    marks = {name: [*_marks(name, entry)] for name, entry in held.items()}

    def is_read(name: str) -> bool:
        others = [mark for other, laid in marks.items() if other != name for mark in laid]
        runs = (
            merged(paper.defaults, of_data.piece(), piece, *others, *marks[name], of_data.fixed)
            for piece in pieces
        )
        return any((name,) in places(read_parts(run)).values() for run in runs)

    return frozenset(
        name for name in paper.settings if name not in held or not (name in changing or is_read(name))
    )


def read_parts(run: Run) -> Run:
    """Return a run without those values of ``data`` that its rules do not read."""
    data = run.get("data")
    if not isinstance(data, dict):
        return run
    return {**run, "data": {name: _read(part, DataSpec, name) for name, part in data.items()}}


def _read(part: Any, owner: type[Spec], name: str) -> Any:
    spec = owner.model_fields[name].annotation if name in owner.model_fields else None
    if (
        not isinstance(part, dict)
        or not isinstance(spec, type)
        or not issubclass(spec, Spec)
        or not spec.reads
    ):
        return part
    known = {key for keys in spec.reads.values() for key in keys}
    rule = part.get("rule", spec.model_fields["rule"].default)
    ignored = known - {*spec.reads.get(str(rule), known)}
    return {key: value for key, value in part.items() if key not in ignored}


def _marks(name: str, entry: SettingEntry) -> Iterator[Mapping[str, Any]]:
    """Yield a setting's pieces of a run with its name, as a mark, in place of the values."""
    written = [*entry.values.values(), *([] if entry.default in entry.values else [entry.default])]
    for place in entry.sets:
        leaves = {leaf for value in written for leaf in places(value, "" if place == "." else place)} - {""}
        yield from (nested(leaf, (name,)) for leaf in sorted(leaves))
