"""A table ready to be written, and the forms it is written in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from fedbench.report.tables import latex, macros, text
from fedbench.report.tables.fold import fold
from fedbench.report.tables.layout import Grid


@dataclass(frozen=True)
class Table:
    """A table's shape and words, its tidy rows, and where they come from.

    ``notes`` are short and stand below it; ``details`` stand at the end of the file or document.
    """

    paper: str
    name: str
    title: str
    grid: Grid
    notes: list[str]
    rows: pd.DataFrame
    provenance: dict[str, Any]
    details: list[str] = field(default_factory=list)

    @cached_property
    def shown(self) -> Grid:
        """The grid without what was not run."""
        return fold(self.grid)

    @property
    def below(self) -> list[str]:
        """What stands below the table: what was not run, then the notes."""
        return [*filter(None, [self.shown.left]), *self.notes]

    def tex(self) -> str:
        """Return the LaTeX form; it needs the booktabs package only. Its details are comments."""
        label = f"tab:{self.paper}-{self.name}"
        written = latex.write(self.shown, self.title, self.below, label, self._comment)
        return written + latex.details(self.details)

    def macros(self) -> str:
        """Return each number as a macro for the text of a paper."""
        return macros.write(f"{self.paper}/{self.name}", self.grid.entries, self._comment)

    @property
    def _comment(self) -> str:
        origin = self.provenance
        return f"fedbench: {self.paper}/{self.name}, scale {origin['scale']}, {origin['stamp']}"

    def markdown(self) -> str:
        """Return the Markdown form."""
        return text.markdown(self.shown, self.title, [*self.below, *self.details])

    def terminal(self, details: bool = True) -> str:
        """Return the plain-text form for a terminal; without ``details`` a line says which command shows them."""
        more = f"More on how it was made: fedbench show {self.paper}/{self.name} --notes"
        return text.terminal(
            self.shown, self.title, [*self.below, *(self.details if details else [more] * bool(self.details))]
        )

    def csv(self) -> str:
        """Return the tidy CSV: one row per number with six significant digits."""
        return self.rows.to_csv(index=False, float_format="%.6g", lineterminator="\n")

    def json(self) -> str:
        """Return the provenance."""
        return json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n"

    def forms(self) -> dict[str, str]:
        """Return what is written, by suffix."""
        return {
            "tex": self.tex(),
            "csv": self.csv(),
            "md": self.markdown(),
            "json": self.json(),
            "macros.tex": self.macros(),
        }


def stamp(commits: Sequence[str], keys: Sequence[str]) -> str:
    """Return the line that ties numbers to code and configuration: commits and a digest of all keys."""
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:12]
    code = ", ".join(commits) or "none (nothing run)"
    changed = " (+: with uncommitted changes)" if any(commit.endswith("+") for commit in commits) else ""
    return f"Runs {digest}, code {code}{changed}"
