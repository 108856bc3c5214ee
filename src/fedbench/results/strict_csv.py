"""CSV that people write: read as it is meant or refused with file, line and column, never read as something else."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path

from fedbench import files
from fedbench.errors import UserError, shortened

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
LARGEST = 1 << 24


class StrictCsv:
    """The rows of a CSV file in UTF-8, with or without a byte order mark, its cells parted by commas.

    Attributes:
        columns: names of the header, each once.
        rows: one mapping per row.
        lines: where each row ends in the file.
    """

    def __init__(self, path: Path) -> None:
        """Read ``path``; :class:`UserError` where it is no such CSV, FileNotFoundError where it is missing."""
        self.path = path
        try:
            text = files.read(path, LARGEST).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
        reader = csv.reader(text.splitlines(keepends=True), strict=True)
        self.columns: list[str] = []
        self.rows: list[Mapping[str, str]] = []
        self.lines: list[int] = []
        try:
            self.columns = self._header(next(reader, []))
            for cells in filter(None, reader):
                if len(cells) != len(self.columns):
                    line, wide = reader.line_num, len(self.columns)
                    raise UserError(f"{path}, line {line}: {len(cells)} cells, the header has {wide}")
                self.rows.append(dict(zip(self.columns, cells, strict=True)))
                self.lines.append(reader.line_num)
        except csv.Error as error:
            raise UserError(f"{path}, line {reader.line_num}: {error}") from None

    def _header(self, names: list[str]) -> list[str]:
        if len(names) == 1 and ";" in names[0]:
            raise UserError(f"{self.path}, line 1: its cells are separated by ';'; save it with commas")
        for place, name in enumerate(names, 1):
            if not name.strip() or name in names[: place - 1]:
                what = "has no name" if not name.strip() else f"{shortened(name, 60)!r} is there twice"
                raise UserError(f"{self.path}, line 1: column {place} {what}")
        return names

    def number(
        self,
        row: int,
        name: str,
        least: float = -math.inf,
        most: float = math.inf,
        integer: bool = False,
        why: str = "",
    ) -> float:
        """Return the number in a cell, NaN where it is empty or there is no such column.

        Raises:
            UserError: it is not a plain number (nan, inf and 8_0 are none), not whole, less than ``least`` or more than
                ``most``; ``why`` says what sets these bounds.
        """
        text = self.rows[row].get(name, "").strip()
        if not text:
            return math.nan
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        problem = "not a number" if not math.isfinite(value) else ""
        if not problem and integer and not value.is_integer():
            problem = "not a whole number"
        if not problem and not least <= value <= most:
            problem = (f"less than {least:g}" if value < least else f"more than {most:g}") + why
        if problem:
            raise UserError(
                f"{self.path}, line {self.lines[row]}: {name} is {shortened(text, 60)!r}, {problem}"
            )
        return value
