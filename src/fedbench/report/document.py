"""A table ready to be written, and the forms it is written in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from fedbench.outputs import csv_text, json_text
from fedbench.report import latex, text
from fedbench.report.layout import Grid, fold
from fedbench.study.plan import Plan

WORDS = 70
"""The most that stand below a table; further notes are at the end of its Markdown, or behind ``--notes``."""


@dataclass(frozen=True)
class Table:
    """A table's shape and words, its tidy rows, and where they come from.

    ``notes`` may stand below it, the most important first; ``details`` never do.
    """

    paper: str
    name: str
    title: str
    grid: Grid
    notes: list[str]
    rows: pd.DataFrame
    provenance: Mapping[str, object]
    details: list[str] = field(default_factory=list)

    @cached_property
    def shown(self) -> Grid:
        """The grid without what was not run."""
        return fold(self.grid)

    @property
    def below(self) -> list[str]:
        """What stands below the table: what was not run, then each note that still fits into :data:`WORDS`."""
        notes: list[str] = []
        for note in self.notes:
            if len(" ".join([*notes, note]).split()) <= WORDS:
                notes.append(note)
        return [*filter(None, [self.shown.left]), *notes]

    @property
    def rest(self) -> list[str]:
        """The notes that do not fit below the table, then the details."""
        below = self.below
        return [*(note for note in self.notes if note not in below), *self.details]

    def tex(self) -> str:
        """Return the LaTeX form, without the notes that do not fit below it; it needs booktabs and graphicx."""
        label = f"tab:{self.paper}-{self.name}"
        return latex.latex_table(self.shown, self.title, self.below, label, self._comment)

    def macros(self) -> str:
        """Return each number as a macro for the text of a paper."""
        return latex.macros_text(f"{self.paper}/{self.name}", self.grid.entries, self._comment)

    @property
    def _comment(self) -> str:
        origin = self.provenance
        return f"fedbench: {self.paper}/{self.name}, scale {origin['scale']}, {origin['stamp']}"

    def markdown(self) -> str:
        """Return the Markdown form."""
        return text.markdown(self.shown, self.title, [*self.below, *self.rest])

    def terminal(self, details: bool = True) -> str:
        """Return the plain-text form for a terminal; without ``details`` a line says which command shows the rest."""
        more = [f"All notes: fedbench show {self.paper}/{self.name} --notes"] if self.rest else []
        return text.terminal(self.shown, self.title, [*self.below, *(self.rest if details else more)])

    def csv(self) -> str:
        """Return the tidy CSV: one row per number with six significant digits."""
        return csv_text(self.rows)

    def json(self) -> str:
        """Return the provenance."""
        return json_text(self.provenance)

    def forms(self) -> dict[str, str]:
        """Return what is written, by suffix."""
        return {
            "tex": self.tex(),
            "csv": self.csv(),
            "md": self.markdown(),
            "json": self.json(),
            "macros.tex": self.macros(),
        }


def origin(plan: Plan, table: str, stamp: str, **more: object) -> dict[str, object]:
    """Return the provenance of a table: whose it is, at which scale, its stamp, and what its kind says besides."""
    return {"paper": plan.study.key, "table": table, "scale": plan.scale.name, "stamp": stamp, **more}


def stamp(commits: Sequence[str], keys: Sequence[str]) -> str:
    """Return the line that ties numbers to code and configuration: commits and a digest of all keys."""
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:12]
    code = ", ".join(commits) or "none (nothing run here)"
    changed = " (+: with uncommitted changes)" if any(commit.endswith("+") for commit in commits) else ""
    return f"Runs {digest}, code {code}{changed}"
