"""Forms of a table."""

from __future__ import annotations

from report_project import Project

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Config


def cell_of(project: Project, config: Config, dataset: str, method: str, p: int = 4) -> Cell:
    cells = project.cells("localscgdam", "table1", config)
    return next(c for c in cells if (c.dataset, c.method, c.setting["p"]) == (dataset, method, p))


def line(text: str, start: str, after: str = "") -> str:
    """The first line that starts with ``start`` after the line that holds ``after``."""
    lines = text[text.index(after) :].splitlines()
    return next(found for found in lines if found.lstrip("| ").startswith(start))
