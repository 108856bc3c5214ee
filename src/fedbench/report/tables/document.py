"""A table ready to be written, and the forms it is written in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedbench.report.tables import latex, text
from fedbench.report.tables.layout import Grid


@dataclass(frozen=True)
class Table:
    """A table's shape and words, its tidy rows, and where they come from."""

    paper: str
    name: str
    title: str
    grid: Grid
    notes: list[str]
    rows: pd.DataFrame
    provenance: dict[str, Any]

    def tex(self) -> str:
        """Return the LaTeX form; it needs the booktabs package only."""
        origin = self.provenance
        comment = f"fedbench: {self.paper}/{self.name}, scale {origin['scale']}, {origin['stamp']}"
        return latex.write(self.grid, self.title, self.notes, f"tab:{self.paper}-{self.name}", comment)

    def markdown(self) -> str:
        """Return the Markdown form."""
        return text.markdown(self.grid, self.title, self.notes)

    def terminal(self) -> str:
        """Return the plain-text form for a terminal."""
        return text.terminal(self.grid, self.title, self.notes)

    def csv(self) -> str:
        """Return the tidy CSV: one row per number with six significant digits."""
        return self.rows.to_csv(index=False, float_format="%.6g", lineterminator="\n")

    def json(self) -> str:
        """Return the provenance."""
        return json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n"

    def forms(self) -> dict[str, str]:
        """Return what is written, by suffix."""
        return {"tex": self.tex(), "csv": self.csv(), "md": self.markdown(), "json": self.json()}


def stamp(commits: Sequence[str], keys: Sequence[str]) -> str:
    """Return the line that ties numbers to code and configuration: commits and a digest of all keys."""
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:12]
    code = ", ".join(commits) or "none (nothing run)"
    changed = " (+: with uncommitted changes)" if any(commit.endswith("+") for commit in commits) else ""
    return f"Runs {digest}, code {code}{changed}"
