"""What a paper prints for the cells of a figure: its tables' values, drawn beside ours."""

from __future__ import annotations

import math

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers.published import PublishedTable, load


class Printed:
    """The published values of a paper, each file read once."""

    def __init__(self, paper: Paper) -> None:
        """Open the files that the paper's tables of results are held against."""
        self._paper = paper
        self._tables: list[tuple[TableSpec, PublishedTable]] = [
            (spec, load(paper.key, spec.published, own=paper.measures))
            for spec in paper.tables.values()
            if spec.published and spec.kind == "results"
        ]

    def value(self, cell: Cell, metric: str) -> float:
        """Return the value of a cell in the first table that has it, NaN where none does.

        A table has it only at its own places: a dataset that stands in, or a setting it leaves at another value, has no
        published value.
        """
        for spec, table in self._tables:
            if self._shows(spec, cell, metric):
                found = table.find(cell.dataset, cell.method, cell.setting, metric)
                if found is not None and found.mean is not None:
                    return found.mean
        return math.nan

    def _shows(self, spec: TableSpec, cell: Cell, metric: str) -> bool:
        settings = self._paper.settings
        here = (
            value in spec.settings.get(name, [settings[name].default]) for name, value in cell.setting.items()
        )
        printed = cell.dataset in spec.datasets and self._paper.datasets[cell.dataset].printed
        return printed and cell.method in spec.methods and metric in spec.metrics and all(here)
