"""The printed numbers of a paper: ``published/<paper>/*.csv`` at the places of its tables."""

from __future__ import annotations

import csv
import functools
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedbench import files
from fedbench.errors import UserError, shortened, unknown
from fedbench.metric_table import Measure, find
from fedbench.project import Folder
from fedbench.results.frame import NAN, NUMBER, Printed, records
from fedbench.results.names import MADE_OF
from fedbench.results.places import Place, Pooled, axes_of, members, words_of
from fedbench.study.configuration import load_paper, paper_keys
from fedbench.study.references import FEDERATED, TRAINING
from fedbench.study.schema import Paper, Value

FOLDER = Folder("published")
BESIDE = {"paper", "table", "dataset", "method", "metric", "mean", "std", "note", "spread", "n_seeds"}
"""Columns that are not settings. ``spread`` and ``n_seeds`` are optional; they override the index."""
DIGITS = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""A plain one: nan, inf and 8_0 are none."""
FREE = Measure(name="", label="", low=-math.inf)
"""What is known of a metric that is in no table."""


class PublishedTable:
    """A published CSV, to be read at the places of a table.

    Attributes:
        rows: its texts, as :func:`read_rows` returns them.
        values: what each row prints.
    """

    def __init__(
        self,
        path: Path,
        spread: str = "none",
        n_seeds: float = NAN,
        additions: Mapping[str, Measure] | None = None,
    ) -> None:
        """Read ``path``; ``additions`` are metrics that a paper adds.

        Raises:
            UserError: it is missing, lacks a column, has words for a number or a number that its metric cannot have.
        """
        self.path, self.rows = path, read_rows(path)
        if missing := [name for name in ("method", "metric", "mean") if name not in self.rows]:
            raise UserError(
                f"{path} lacks the column {', '.join(missing)}; it has {', '.join(self.rows.columns)}"
            )
        measures = [find(name, additions) or FREE for name in self.rows["metric"]]
        low, high = np.array([(of.low, of.high) for of in measures]).reshape(-1, 2).T
        mean, std = self._numbers("mean", low, high), self._numbers("std", 0, high - low)
        runs = self._numbers("n_seeds", mean.notna().astype(float), math.inf)
        spreads, notes = self._texts("spread").replace("", spread), self._texts("note")
        common = notes.nunique() == 1  # a remark on all rows is no doubt about any
        plain = common | notes.eq("") | notes.str.startswith(("bold in print", "mean and std"))
        decimals = self.rows["mean"].map(lambda text: len(text.partition(".")[2]))
        columns = {
            "printed": mean, "printed_text": self.rows["mean"], "printed_std": std,
            "printed_std_text": self._texts("std"), "note": notes, "doubt": notes.mask(plain, ""),
            "spread": spreads, "print_seeds": runs.fillna(n_seeds), "comparable_std": std.where(spreads == "std"),
            "print_digits": decimals.groupby(self.rows["metric"]).transform("max"),
        }  # fmt: skip
        self.values = records(pd.DataFrame(columns), Printed)

    def _texts(self, name: str) -> pd.Series[str]:
        return self.rows.get(name, pd.Series("", self.rows.index, dtype="str"))

    def _numbers(self, name: str, least: ArrayLike, most: ArrayLike) -> pd.Series[float]:
        """Return the numbers of a column, NaN where a cell is empty or there is no such column.

        :class:`UserError` where one is no number between the bounds, where runs are not whole or a std is alone.
        """
        texts, limits = self._texts(name), pd.DataFrame({"least": least, "most": most}, self.rows.index)
        values = texts.map(lambda text: float(text) if DIGITS.fullmatch(text) else NAN).astype(float)
        alone = self.rows["mean"].eq("") & (name == "std")
        problems = {
            "not a number": (texts != "") & ~np.isfinite(values),
            "not a whole number": (values % 1 > 0) & (name == "n_seeds"),
            "its row has no mean; give both or neither": values.notna() & alone,
            "": (values < limits["least"]) | (values > limits["most"]),
        }
        for problem, bad in problems.items():
            for line in bad.index[bad][:1]:
                low, high = limits.loc[line]
                lies = f"{name} of {self.rows['metric'][line]} lies between {low:g} and {high:g}"
                if high == 1:
                    lies += ", and numbers are no percentages"
                text = shortened(texts[line], 60)
                raise UserError(f"{self.path}, line {line}: {name} is {text!r}: {problem or lies}")
        return values

    def at(
        self, axes: Mapping[str, Sequence[Value]], metrics: Sequence[str]
    ) -> dict[tuple[Place, str], Printed]:
        """Return the numbers at the places of a table, by place and metric.

        An axis counts when the file has a column for it; an empty cell fits every value of a setting, which the paper
        does not state, and so does a pooled setting every cell. Print is of federated training, and of no average,
        slope or gain, where it does not say so.

        Raises:
            UserError: two rows fit one place, which does not say which one it is.
        """
        fits = [self._fitting(*axis) for axis in axes.items()]
        fitting: dict[tuple[Place, str], list[int]] = {}
        for number, (metric, *values) in enumerate(zip(self.rows["metric"], *fits, strict=True)):
            for place in itertools.product(*values) if metric in metrics else ():
                fitting.setdefault((tuple(zip(axes, place, strict=True)), metric), []).append(number)
        for (at, _), numbers in fitting.items():
            if len(numbers) > 1:
                lines = ", ".join(str(self.rows.index[number]) for number in numbers)
                raise UserError(
                    f"{self.path}: lines {lines} all fit {words_of(at)}; "
                    "give the cell a setting, or the file a column, that tells them apart"
                )
        return {at: self.values[number] for at, (number,) in fitting.items()}

    def _fitting(self, axis: str, values: Sequence[Value]) -> list[Sequence[Value]]:
        """Return the values of an axis that each row fits: what is made of others, and a reference, only by name."""
        plain = [v for v in values if v not in MADE_OF and (axis != TRAINING or v == FEDERATED)]
        if axis not in self.rows:
            return [plain] * len(self.rows)
        texts, optional = self.rows[axis], axis not in BESIDE
        fits = {
            text: [v for v in (values if text else plain) if _same(text, v, optional)] for text in {*texts}
        }
        return [fits[text] for text in texts]


def read_rows(path: Path) -> pd.DataFrame:
    """Return the texts of a CSV that people write, without blanks around them; the index is the line each row ends in.

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
    rows = dict[int, dict[str, str]]()
    try:
        columns = [*(reader.fieldnames or [])]
        if len(columns) == 1 and ";" in columns[0]:
            raise UserError(f"{path}, line 1: its cells are separated by ';'; save it with commas")
        if len({*columns, ""}) <= len(columns):
            raise UserError(f"{path}, line 1: a column has no name, or that of another one")
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}, line {reader.line_num}: not as many cells as the header")
            rows[reader.line_num] = {name: cell.strip() for name, cell in row.items()}
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.reader.line_num}: {error}") from None
    return pd.DataFrame([*rows.values()], [*rows], columns, dtype="str")


def _same(text: str, value: Value, optional: bool) -> bool:
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
    """Return ``published/<paper>/<filename>``, else ``filename`` itself where that is a file."""
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
    path, index, measures = locate(paper, filename), FOLDER / "index.csv", tuple((additions or {}).items())
    if index.exists() and path.is_relative_to(FOLDER):
        rows = read_rows(index)
        for _, row in rows[rows["file"] == path.relative_to(FOLDER).as_posix()].iterrows():
            return _read(path, row["spread"], float(row["n_seeds"] or NAN), measures, files.mark(path))
    table = _read(path, "std", NAN, measures, files.mark(path))
    # a column that is neither one of ours nor a setting of the paper is a slip, mostly
    known = {*BESIDE, *load_paper(paper).settings, "n_clients", "split"} if paper in paper_keys() else ()
    for name in table.rows.columns if known else ():
        if name not in known:
            raise UserError(f"{path}, line 1: {unknown('column', name, known)}")
    return table


@functools.lru_cache(maxsize=64)
def _read(
    path: Path,
    spread: str,
    n_seeds: float,
    additions: tuple[tuple[str, Measure], ...],
    _mark: files.Mark | None,
) -> PublishedTable:
    """Read a file once for all that ask, and again when it changes."""
    return PublishedTable(path, spread, n_seeds, dict(additions))


def printed(paper: Paper, target: str, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return what a table prints of some metrics, else of its own, as if it were one seed; nothing of a figure."""
    spec, rows = paper.tables.get(target), list[tuple[Place, Value, str, int, float, float]]()
    if spec and spec.published:
        axes: dict[str, Sequence[Value]] = {**axes_of(paper, spec), "method": spec.methods}
        table = load_published(paper.key, spec.published, paper.measures)
        for ((*place, (_, method)), metric), number in table.at(axes, metrics or spec.metrics).items():
            rows += [(tuple(place), method, metric, 0, number.printed, NAN)] if number.printed_text else []
    return pd.DataFrame(rows, columns=[*NUMBER, "seed", "value", "tried"])


def printed_results(paper: Paper) -> dict[tuple[Place, str, str], float]:
    """Return what tables of results print by place, method and metric; of what several print, the first one's value.

    A dataset that is not the study's own has none, nor a setting that no table shows.
    """
    values: dict[tuple[Place, str, str], float] = {}
    for target, spec in paper.tables.items():
        numbers = printed(paper, target)[[*NUMBER, "value"]] if spec.kind == "results" else pd.DataFrame()
        for place, method, metric, value in numbers.itertuples(index=False, name=None):
            for member in members(place) if paper.datasets[str(place[0][1])].printed else ():
                values.setdefault((member, method, metric), value)
    return values
