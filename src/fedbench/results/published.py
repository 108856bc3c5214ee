"""The printed numbers of a paper: ``published/<paper>/*.csv`` at the places of its tables."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench import files
from fedbench.errors import UserError, shortened, unknown
from fedbench.metric_table import Measure, find
from fedbench.project import Folder
from fedbench.results.frame import NUMBER, Printed
from fedbench.results.places import Place, Pooled, axes_of, members, shown, words_of
from fedbench.study.configuration import load_paper, paper_keys
from fedbench.study.schema import Paper, TableSpec, Value

FOLDER = Folder("published")
COORDINATES = ("dataset", "method", "metric")
BESIDE = {"paper", "table", "note", "spread", "n_seeds", "mean", "std", *COORDINATES}
"""Columns that are not settings. ``spread`` and ``n_seeds`` are optional; they override the index."""
DIGITS = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""A plain one: nan, inf and 8_0 are none."""


class PublishedTable:
    """A published CSV, to be read at the places of a table."""

    def __init__(
        self,
        path: Path,
        spread: str = "none",
        n_seeds: float = math.nan,
        additions: Mapping[str, Measure] | None = None,
    ) -> None:
        """Read ``path``; ``additions`` are metrics that a paper adds.

        Raises:
            UserError: it is missing, lacks a column, has words for a number or a number that its metric cannot have.
        """
        self.path = path
        self.columns, self.rows, self.lines = read_rows(path)
        if missing := [name for name in ("method", "metric", "mean") if name not in self.columns]:
            raise UserError(f"{path} lacks the column {', '.join(missing)}; it has {', '.join(self.columns)}")
        self.settings = [name for name in self.columns if name not in BESIDE]
        notes = {row.get("note") or "" for row in self.rows}
        self.common_note = notes.pop() if len(notes) == 1 else ""
        measures = {row["metric"]: find(row["metric"].strip(), additions) for row in self.rows}
        self.values = [
            self._value(i, measures[row["metric"]], spread, n_seeds) for i, row in enumerate(self.rows)
        ]
        decimals = max((len(v.printed_text.partition(".")[2]) for v in self.values), default=3)
        self.values = [replace(value, print_digits=decimals) for value in self.values]

    def _value(self, index: int, measure: Measure | None, spread: str, n_seeds: float) -> Printed:
        row, (low, high) = self.rows[index], (measure.low, measure.high) if measure else (-math.inf, math.inf)
        mean, std = self._number(index, "mean", low, high), self._number(index, "std", 0, high - low)
        runs = self._number(index, "n_seeds", 0 if math.isnan(mean) else 1)
        note, spread = row.get("note") or "", row.get("spread") or spread
        plain = note in (self.common_note, "") or note.startswith(("bold in print", "mean and std"))
        return Printed(
            mean, row["mean"].strip(), std, row.get("std", "").strip(), note, "" if plain else note, spread,
            print_seeds=n_seeds if math.isnan(runs) else runs,
            comparable_std=std if spread == "std" else math.nan,
        )  # fmt: skip

    def _number(self, index: int, name: str, least: float, most: float = math.inf) -> float:
        """Return the number in a cell, NaN where it is empty or there is no such column.

        :class:`UserError` where it is no number between the bounds, or where runs are not whole.
        """
        text = self.rows[index].get(name, "").strip()
        value = float(text) if DIGITS.fullmatch(text) else math.nan
        problem = ""
        if text and not math.isfinite(value):
            problem = "not a number"
        elif name == "n_seeds" and value % 1 > 0:
            problem = "not a whole number"
        elif value < least or value > most:
            problem = f"{name} of {self.rows[index]['metric']} lies between {least:g} and {most:g}"
            problem += ", and numbers are no percentages" * (most == 1)
        if problem:
            raise UserError(
                f"{self.path}, line {self.lines[index]}: {name} is {shortened(text, 60)!r}: {problem}"
            )
        return value

    def at(
        self, axes: Mapping[str, Sequence[Value]], metrics: Sequence[str]
    ) -> dict[tuple[Place, str], Printed]:
        """Return the numbers at the places of a table, by place and metric.

        An axis counts when the file has a column for it; an empty cell fits every value of a setting, which the paper
        does not state, and so does a pooled setting every cell.

        Raises:
            UserError: two rows fit one place, which does not say which one it is.
        """
        settings, columns = [*self.settings], [name for name in axes if name in self.columns]
        fits = {
            name: {
                text: [value for value in axes[name] if _same(text, value, name in settings)]
                for text in {row[name] for row in self.rows}
            }
            for name in columns
        }
        fitting: dict[tuple[Place, str], list[int]] = {}
        for number, row in enumerate(self.rows):
            values = [fits[name][row[name]] if name in fits else axes[name] for name in axes]
            metric = row["metric"].strip()
            for place in itertools.product(*values) if metric in metrics else ():
                fitting.setdefault((tuple(zip(axes, place, strict=True)), metric), []).append(number)
        for (at, _), numbers in fitting.items():
            if len(numbers) > 1:
                lines = ", ".join(str(self.lines[number]) for number in numbers)
                raise UserError(
                    f"{self.path}: lines {lines} all fit {words_of(at)}; "
                    "give the cell a setting, or the file a column, that tells them apart"
                )
        return {at: self.values[number] for at, (number,) in fitting.items()}


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]], list[int]]:
    """Return the columns of a CSV that people write, its rows, and the line that each of them ends in.

    Raises:
        UserError: it is missing, not in UTF-8, or not a table of cells parted by commas.
    """
    try:
        text = files.read(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"published numbers {path} do not exist; name a file of {FOLDER}/<paper>/") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    rows, lines = [], []
    try:
        columns = [*(reader.fieldnames or [])]
        if len(columns) == 1 and ";" in columns[0]:
            raise UserError(f"{path}, line 1: its cells are separated by ';'; save it with commas")
        if len({*columns, ""}) <= len(columns):
            raise UserError(f"{path}, line 1: a column has no name, or that of another one")
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}, line {reader.line_num}: not as many cells as the header")
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.reader.line_num}: {error}") from None
    return columns, rows, lines


def _same(text: str, value: Value, optional: bool) -> bool:
    text = text.strip()
    if optional and (not text or isinstance(value, Pooled)):
        return True
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float):
        try:
            return math.isclose(float(text), value, rel_tol=1e-9, abs_tol=1e-12)
        except ValueError:
            return False
    return text == str(value)


def locate(paper: str, filename: str) -> Path:
    """Return ``published/<paper>/<filename>``, else ``filename`` itself where that is a file ."""
    usual = FOLDER / paper / filename
    return usual if usual.exists() or not Path(filename).is_file() else Path(filename)


def load_published(
    paper: str, filename: str, additions: Mapping[str, Measure] | None = None
) -> PublishedTable:
    """Open ``published/<paper>/<filename>``, else ``filename`` as a path of the user's own.

    What its ± means comes from ``published/index.csv`` for the files listed there; in any other it is a
    standard deviation over runs, unless its column ``spread`` says something else. ``additions`` are metrics that the
    paper adds.
    """
    path, index = locate(paper, filename), FOLDER / "index.csv"
    if index.exists() and path.is_relative_to(FOLDER):
        columns, rows, lines = read_rows(index)
        if missing := [name for name in ("file", "spread", "n_seeds") if name not in columns]:
            raise UserError(f"{index} lacks the column {', '.join(missing)}")
        for row, line in zip(rows, lines, strict=True):
            if row["file"] == path.relative_to(FOLDER).as_posix():
                runs = row["n_seeds"].strip()
                if runs and not re.fullmatch("[1-9][0-9]*", runs):
                    raise UserError(
                        f"{index}, line {line}: n_seeds is {shortened(runs, 60)!r}: not a whole number"
                    )
                return PublishedTable(path, row["spread"], float(runs or "nan"), additions)
    table = PublishedTable(path, "std", additions=additions)
    _check_columns(table, paper)
    return table


def _check_columns(table: PublishedTable, paper: str) -> None:
    """Refuse a column of a user's own file that is neither one of ours nor a setting of the paper: a slip, mostly."""
    settings = load_paper(paper).settings if paper in paper_keys() else None
    if settings is None:
        return
    known = {*BESIDE, *settings, "n_clients", "split"}
    for name in table.columns:
        if name not in known:
            raise UserError(f"{table.path}, line 1: {unknown('column', name, known)}")


def print_of(
    paper: Paper, spec: TableSpec, axes: Mapping[str, Sequence[Value]], metrics: Sequence[str]
) -> dict[tuple[Place, str, str], Printed]:
    """Return what a table prints of some metrics by place, method and metric; ``axes`` end with the method.

    Bounds are printed as whole numbers and shown as their metrics are.
    """
    known = (
        load_published(paper.key, spec.published, paper.measures).at(axes, metrics) if spec.published else {}
    )
    bounds = spec.kind == "rates"
    return {
        (tuple(place), str(method), metric): replace(number, print_digits=math.nan) if bounds else number
        for ((*place, (_, method)), metric), number in known.items()
    }


def printed(paper: Paper, targets: Sequence[str], metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return what tables print of some metrics, else of their own, as if it were one seed."""
    rows = list[tuple[str | Place | float, ...]]()
    for target in targets:
        spec = shown(paper, target)
        if isinstance(spec, TableSpec) and spec.published:
            axes: dict[str, list[Value]] = {**axes_of(paper, spec), "method": [*spec.methods]}
            numbers = print_of(paper, spec, axes, metrics or spec.metrics).items()
            rows += [(target, *at, 0, one.printed, math.nan) for at, one in numbers if one.printed_text]
    return pd.DataFrame(rows, columns=["target", *NUMBER, "seed", "value", "tried"])


def printed_in(numbers: pd.DataFrame, targets: Sequence[str], metric: str) -> pd.DataFrame:
    """Return what some tables print of a metric; of a place that several have, the first one's value."""
    order = numbers["target"].map({target: at for at, target in enumerate(targets)})
    chosen = numbers[order.notna() & (numbers["metric"] == metric)]
    return chosen.iloc[np.argsort(order[chosen.index], kind="stable")].drop_duplicates(["place", "method"])


def printed_results(paper: Paper) -> dict[tuple[Place, str, str], float]:
    """Return what tables of results print by place, method and metric; of what several print, the first one's value.

    A dataset that is not the study's own has none, nor a setting that no table shows.
    """
    numbers = printed(paper, [name for name, spec in paper.tables.items() if spec.kind == "results"])
    values: dict[tuple[Place, str, str], float] = {}
    columns = (numbers[name] for name in ("place", "method", "metric", "value"))
    for place, method, metric, value in zip(*columns, strict=True):
        if paper.datasets[str(place[0][1])].printed:
            for member in members(place):
                values.setdefault((member, method, metric), value)
    return values
