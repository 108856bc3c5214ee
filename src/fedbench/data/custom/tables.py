"""Reads a table of one's own: a spreadsheet, or what it saves as CSV."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fedbench.data.custom.class_labels import as_number, twins
from fedbench.errors import UserError, installed, shortened, unknown
from fedbench.files import read

MOST_WORDS = 50
"""Different words of a column that becomes one feature for each of them."""
_EMPTY = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""What a feature's cell holds that says nothing; these are pandas' own."""
_DECIMAL = re.compile(r'(?<![^;\t\n\r"])[-+]?\d+[.,]\d+(?![^;\t\n\r"])')
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")


@dataclass(frozen=True)
class Table:
    """The rows of a table that are used.

    Attributes:
        features: a column of numbers or of words for each feature; numbers may be nan.
        named: the text of the columns of labels, groups, sites and the like, by name.
        rows: which rows of the file they are [n], counted from 0.
        notes: what was left out.
        remarks: what may have been misread.
    """

    features: pd.DataFrame
    named: dict[str, np.ndarray]
    rows: np.ndarray
    notes: tuple[str, ...]
    remarks: tuple[str, ...]


def read_table(
    file: Path,
    named: Sequence[str],
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Literal["error", "drop", "median"] = "error",
    words: Collection[str] | None = None,
) -> Table:
    """Read a table with a header: one to train on, or further rows of it for a model.

    Args:
        file: separated by commas, semicolons or tabs, whichever its header has; in UTF-8, or UTF-16 with its mark. Of
            an ``.xlsx`` its first sheet.
        named: columns that are not features. Only an empty cell is missing there: "NA" and "None" are words. Further
            rows may lack them, and their cells may be empty.
        keep, drop, missing: as ``features``, ``drop``, ``missing`` of :class:`~fedbench.data.custom.spec.OwnSpec`.
        words: of further rows the features that a model reads as words, the others being numbers; None to train.

    Raises:
        UserError: it is no such table; the message names the line, the column and the key that helps.
    """
    (frame, remarks), trained = _parsed(file, named, words or ()), words is not None
    features = _features(file, frame, named, keep, drop, trained)
    named = [column for column in named if column in frame]
    gaps = frame[[*(() if trained else named), *(features if missing != "median" else ())]].isna()
    rows, notes = _without_gaps(file, gaps, missing, named, " and train again" if trained else "")
    numbers = [name for name in map(str, features) if name not in (words or ())]
    features = features.assign(**{name: _checked(file, features[name], name, trained) for name in numbers})
    columns = {name: frame[name][rows].fillna("").to_numpy(dtype=str) for name in named}
    return Table(features[rows].reset_index(drop=True), columns, np.flatnonzero(rows), notes, remarks)


def _features(
    file: Path, frame: pd.DataFrame, named: Sequence[str], keep: Sequence[str] | None, drop: Sequence[str],
    trained: bool,
) -> pd.DataFrame:  # fmt: skip
    """Return the columns of features, once all are there that are needed; arguments as in :func:`read_table`."""
    needed = (*(() if trained else named), *(keep or ()), *drop)
    if lacking := [column for column in needed if column not in frame]:
        error = unknown(f"column in {file}", lacking[0], map(str, frame.columns))
        raise UserError(f"a column that the model was trained on is not there: {error}") if trained else error
    features = frame[[*keep]] if keep is not None else frame.drop(columns=[*dict.fromkeys((*named, *drop))])
    if frame.empty or (features.empty and keep != ()):
        raise UserError(f"{file} has {len(frame)} rows and {features.shape[1]} columns of features.")
    for name in features if not trained else ():
        if features[name].isna().all():
            raise UserError(f"{file}: column {name!r} has empty cells alone; write `drop: [{name}]`")
    return features


def _text(file: Path) -> str:
    """Return a table as the text of a CSV whose lines end alike."""
    content = read(file, sys.maxsize)
    if file.suffix == ".xlsx":
        return _sheet(file, content)
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeError:
        raise UserError(f"{file} cannot be read as a table: it must be UTF-8; save it as CSV UTF-8") from None
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")  # as lines end on an old Macintosh


def _sheet(file: Path, content: bytes) -> str:
    """Return the first sheet of a workbook as the text of a CSV, a line for each of its rows."""
    try:
        with installed("excel", f"reading {file} needs openpyxl"):
            sheet = pd.ExcelFile(io.BytesIO(content), engine="openpyxl")
        cells = pd.read_excel(sheet, header=None, dtype=object, keep_default_na=False)
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"{file} cannot be read as a workbook ({error}): save it again, or as CSV") from None
    return str(cells.to_csv(index=False, header=False))


def _parsed(file: Path, named: Sequence[str], words: Collection[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the cells, text in ``named`` columns and ``words``, in others numbers where all are; and remarks."""
    text = _text(file)
    if not text.strip():
        raise UserError(f"{file} is empty: save the table again, with a header and a row for each sample")
    header, separator = _header(file, text)
    decimal, remarks = _decimal(file, text) if separator != "," else (".", ())
    empty = {name: [""] if name in named else [*_EMPTY] for name in header}
    text_in = dict.fromkeys((*named, *words), str)
    try:  # the type of a column from all of its rows, not per chunk: labels of two types have no order
        # cells without a name are warned of
        with warnings.catch_warnings(category=pd.errors.ParserWarning, action="error"):
            frame = pd.read_csv(
                io.StringIO(text), sep=separator, decimal=decimal, low_memory=False, dtype=text_in, index_col=False,
                keep_default_na=False, na_values=empty, lineterminator="\n",
            )  # fmt: skip
        return frame, remarks
    except (ValueError, KeyError, pd.errors.ParserWarning) as error:  # ragged
        raise UserError(
            f"{file} cannot be read as a table ({str(error).strip()}): it must have a header of {len(header)} names, "
            f"separated by {separator!r}, and as many cells in each row."
        ) from None


def _header(file: Path, text: str) -> tuple[list[str], str]:
    """Return the names of the columns and what separates them."""
    bare = re.sub(r'"[^"]*"', "", text[: 1 << 20])  # a name in quotes may have commas
    separator = max(",;\t", key=bare.partition("\n")[0].count)
    try:
        names = next(csv.reader(io.StringIO(text[: 1 << 20]), delimiter=separator), [])
    except csv.Error as error:
        raise UserError(f"{file} cannot be read as a table ({error})") from None
    if doubled := [name for name, count in Counter(names).items() if count > 1 or not name]:
        raise UserError(
            f"{file}: each column needs a name of its own, not {doubled[0]!r}; numbers of rows are not "
            "features: leave them out"
        )
    return names, separator


def _decimal(file: Path, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the decimal sign of a table that is not separated by commas, and a remark if it may mean thousands."""
    cells = _DECIMAL.findall(text)
    comma, point = (next((cell for cell in cells if sign in cell), None) for sign in ",.")
    if comma and point:
        raise UserError(f"{file} has decimal commas ({comma}) and decimal points ({point}): make them alike")
    may_be = bool(cells) and all(map(_THOUSANDS.fullmatch, cells))
    said = f"{cells[0]} was read as decimals; if it means thousands, leave the sign out" if may_be else ""
    return "," if comma else ".", (said,) if said else ()


def _without_gaps(
    file: Path, gaps: pd.DataFrame, missing: str, named: Sequence[str], again: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return which rows are used [n], by the empty cells of each, and a note on those that are not."""
    bad = gaps.any(axis=1).to_numpy()
    if not bad.any():
        return ~bad, ()
    if missing != "drop":
        row = int(bad.argmax())
        column = str(gaps.columns[gaps.iloc[row]][0])
        more = f", as are {bad.sum() - 1} more rows" if bad.sum() > 1 else ""
        cure = f"fill it, or write `missing: drop` or `missing: median` into the dataset's YAML{again}"
        if column in named:
            cure = "fill it, or delete such rows; `missing: drop` leaves out rows with an empty feature, too"
        raise UserError(f"{file}, line {row + 2}: column {column!r} is empty{more}; {cure}")
    if bad.all():
        raise UserError(f"{file}: each row has an empty cell, so that `missing: drop` leaves none")
    return ~bad, (f"{bad.sum()} of {len(bad)} rows have an empty cell and were left out",)


def _checked(file: Path, column: pd.Series, name: str, trained: bool = False) -> pd.Series:
    """Return a column; one of words that is meant as numbers, or has a word for almost every row, is refused.

    So is a number that single precision cannot hold, and a word where a model was ``trained`` on numbers.
    """
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":  # with empty cells pandas leaves objects
        column = column.astype(np.float64)
    if pd.api.types.is_numeric_dtype(column):
        if (large := np.abs(column.to_numpy(np.float64)) > np.finfo(np.float32).max).any():
            row = int(large.argmax())
            raise UserError(
                f"{file}, line {row + 2}: column {name!r} has {column[row]:.4g}, which is not finite in float32; "
                f"mend it, or write `drop: [{name}]`"
            )
        return column
    words = column.dropna().astype(str)
    numbers = pd.to_numeric(words.str.strip(), errors="coerce")
    if numbers.notna().all():  # too long for a whole number
        return _checked(file, pd.to_numeric(column, errors="coerce").astype(np.float64), name)
    if trained or 2 * numbers.notna().sum() > len(words):
        row = int(numbers.index[numbers.isna()][0])
        cure = "as it was in training; mend it" if trained else f"mend it, or write `drop: [{name}]`"
        raise UserError(
            f"{file}, line {row + 2}: column {name!r} has {shortened(str(column[row]), 40)!r}, which is not numeric"
            f"{',' if trained else ';'} {cure}"
        )
    if words.nunique() > MOST_WORDS:
        raise UserError(
            f"{file}: column {name!r} is not numeric and has {words.nunique()} different words, such as "
            f"{shortened(words.iloc[0], 40)!r}; if it names patients, write `group: {name}`, else `drop: [{name}]`"
        )
    return column


def as_labels(text: np.ndarray) -> np.ndarray:
    """Return a column [n] of text as numbers where all cells are, each written in one way; 007 is a name."""
    cells = set(text.tolist())
    if any(re.match(r"\s*[-+]?0\d", cell) for cell in cells) or twins(cells, as_number):
        return text
    if all(re.fullmatch(r"[-+]?\d{1,18}", cell.strip()) for cell in cells):
        return text.astype(np.int64)
    try:
        number = text.astype(np.float64)
    except ValueError:
        return text
    exact = np.isfinite(number).all() and np.abs(number).max(initial=0) < 2**53
    return number if exact else text
