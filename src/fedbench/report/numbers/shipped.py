"""Numbers that travel with the repository: rows of ``reproduced/`` whose key is still the key of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedbench.errors import UserError
from fedbench.plan.cells import Cell, cell_at
from fedbench.plan.configuration import CONFIG_DIR, scale_of
from fedbench.plan.schema import Config, Paper, Scale, Value
from fedbench.report.files import REPRODUCED
from fedbench.report.numbers import idle, sums
from fedbench.report.numbers.measurement import (
    COSTS,
    DIVERGED,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    Cost,
    Measurement,
    Repeat,
    of_cell,
)
from fedbench.report.numbers.published import Published, PublishedTable
from fedbench.specs import digest

FIRST = ("paper", "reduced")
"""Scales in the order in which they come near to the paper; others follow."""


class Shelf:
    """What ``reproduced/`` has of a paper. A number counts only while the configuration still gives its key."""

    def __init__(self, config: Config, paper: Paper, root: Path = Path()) -> None:
        """Read the files; :class:`UserError` when one is not what the list of checksums says, or is no such table."""
        self._config, self._paper, self._root = config, paper, root
        self._tables: dict[str, list[PublishedTable]] = {}
        self._cells: dict[tuple[Any, ...], Cell | None] = {}
        keys = [key for key in (paper.key, paper.extends) if key]  # what the paper it extends has too, by key
        found = [path for key in keys for path in sorted((root / REPRODUCED).glob(f"*/{key}/*.csv"))]
        found = found if config.shipped else []
        known = {path.stem for path in (root / CONFIG_DIR / "scales").glob("*.yaml")}
        for path in found:
            if (scale := path.parent.parent.name) in known:
                sums.check(root / REPRODUCED, path)
                self._tables.setdefault(scale, []).append(PublishedTable(path, own=paper.measures))
        self.scales = sorted(
            self._tables, key=lambda scale: (scale not in FIRST, scale not in FIRST[:1], scale)
        )

    def find(
        self, scale: str, dataset: str, setting: Mapping[str, Value], method: str, metric: str
    ) -> Measurement | None:
        """Return the number of a place at a scale, None where there is none under the key of today."""
        for table in self._tables.get(scale, []):
            found = table.find(dataset, method, setting, metric)
            if found is None:
                continue
            try:
                one = self._counted(table.rows[found.row], scale, dataset, setting, method, metric)
            except (KeyError, ValueError) as error:
                raise _no_row(table, found, error) from None
            if one is not None:
                return replace(one, source=self._line(table, found))
        return None

    def fitted(self, cells: Sequence[Cell], setting: Mapping[str, Value], metric: str) -> Measurement | None:
        """Return what was fitted to several cells of one scale, None where there is nothing under their keys of today.

        Args:
            cells: of one method, one for each budget.
            setting: what they have in common, with which the row was written.
            metric: what was fitted.
        """
        first = cells[0]
        for table in self._tables.get(first.scale, []):
            found = table.find(first.dataset, first.method, setting, metric)
            if found is None:
                continue
            row = table.rows[found.row]
            try:
                if row["status"] != FINISHED or row["key"] not in _joint_keys(cells, row):
                    continue
                one = _measurement(row, first, metric)
                return replace(one, setting=setting, source=self._line(table, found))
            except (KeyError, ValueError) as error:
                raise _no_row(table, found, error) from None
        return None

    def _line(self, table: PublishedTable, found: Published) -> str:
        return f"{table.path.relative_to(self._root)}:{table.line(found)}"

    def _counted(
        self, row: Mapping[str, str], scale: str, dataset: str, setting: Mapping[str, Value], method: str,
        metric: str,
    ) -> Measurement | None:  # fmt: skip
        """Return the number of a row, None where it has none under the key of today."""
        if row["status"] not in (FINISHED, INCOMPLETE, DIVERGED, NOT_REACHED):
            return None
        seeds = list(values_of(row)) or None
        cell = self._cell(scale, dataset, setting, method)
        keys = set() if cell is None else _keys(cell, seeds, int(row["n_seeds"] or 0))
        if cell is not None and seeds and row["status"] == DIVERGED:  # the seeds that diverged have no value
            keys |= _keys(cell, None, max(seeds))
        if cell is None or row["key"] not in keys:
            return None
        return _measurement(row, cell, metric)

    def has(self, cell: Cell, metrics: Sequence[str]) -> bool:
        """Say whether all of some metrics of a cell are there, at its own scale."""
        place = cell.scale, cell.dataset, cell.setting, cell.method
        return all(self.find(*place, metric) is not None for metric in metrics)

    def best(
        self, scale: str, dataset: str, setting: Mapping[str, Value], wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Measurement]:
        """Return what there is of some (method, metric) of a place, all at one scale, or methods could not be compared.

        The scale that has most of it: of equals ``scale`` itself, then the one nearest to the paper.
        """
        most: dict[tuple[str, str], Measurement] = {}
        for each in dict.fromkeys((scale, *self.scales)):
            found = {pair: one for pair in wanted if (one := self.find(each, dataset, setting, *pair))}
            if len(found) > len(most):
                most = found
        return most

    def _cell(self, scale: str, dataset: str, setting: Mapping[str, Value], method: str) -> Cell | None:
        place = (scale, dataset, tuple(setting.items()), method)
        if place not in self._cells:
            try:
                spec = self._scale(scale)
                self._cells[place] = cell_at(
                    self._config, self._paper, spec, dataset, dict(setting), method, self._root / CONFIG_DIR
                )
            except UserError:  # no cell of today's configuration
                self._cells[place] = None
        return self._cells[place]

    def _scale(self, name: str) -> Scale:
        """Return a scale with the constants that this call asks for: with others it has other keys."""
        return scale_of(self._config.model_copy(update={"scale": name}), self._root / CONFIG_DIR)


def _no_row(table: PublishedTable, found: Published, error: Exception) -> UserError:
    return UserError(
        f"{table.path}, line {table.line(found)}: it is no row that `fedbench export` wrote ({error})"
    )


def _joint_keys(cells: Sequence[Cell], row: Mapping[str, str]) -> set[str]:
    """Return what several cells are called together, with the seeds of today or those of a row."""
    seeds = list(values_of(row))
    given = (digest([cell.runs[0].seeded(seed).key for seed in seeds]) for cell in cells)
    return {" ".join(cell.key for cell in cells), *([" ".join(given)] if seeds else [])}


def _keys(cell: Cell, seeds: list[int] | None, count: int) -> set[str]:
    """Return the keys that a cell has with the seeds of a row or its own; of unknown ones, with the first so many."""
    tried = [seeds] if seeds else [list(range(n)) for n in range(max(count, 1), count + 4)]
    first = cell.runs[0]
    return {cell.key, *(digest([first.seeded(seed).key for seed in each]) for each in tried)}


def values_of(row: Mapping[str, str], column: str = "values") -> dict[int, float]:
    """Read the values of the seeds from a row: ``0:0.9786 1:0.9791``."""
    pairs = [pair.split(":") for pair in (row.get(column) or "").split()]
    return {int(seed): float(value) for seed, value in pairs}


def _signs_of(row: Mapping[str, str]) -> dict[int, str]:
    """Read which seeds learned nothing, and what shows it: ``1:one_class``."""
    pairs = [pair.replace("_", " ").split(":") for pair in (row.get("signs") or "").split()]
    if unknown := {word for _, word in pairs} - {*idle.MEANING}:
        raise ValueError(f"signs: {', '.join(sorted(unknown))}")
    return {int(seed): word for seed, word in pairs}


def _measurement(row: Mapping[str, str], cell: Cell, metric: str) -> Measurement:
    def number(name: str) -> float:
        return float(row.get(name) or "nan")

    values, count = values_of(row), int(row["n_seeds"] or 0)
    return Measurement(
        **of_cell(cell, metric),
        status=row["status"],
        reason=row["note"],
        values=dict[Repeat, float](values.items()),
        n_wanted=max(count, 1),
        commit=row["commit"],
        device_mean=number("device_mean"),
        device_variance=number("device_variance"),
        key=row["key"],
        cost=Cost(
            **{name: number(name) for name in COSTS},
            hardware=row.get("hardware") or "",
            equal_costs=row.get("equal_costs") or (" ".join(COSTS) if len(values) == 1 else ""),
        ),
        shipped=True,
        summary=None if values or not count else (number("mean"), number("std"), count),
        paces=dict[Repeat, float](values_of(row, "paces").items()),
        signs=dict[Repeat, str](_signs_of(row).items()),
    )
