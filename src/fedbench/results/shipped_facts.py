"""Counts of data that travel with the repository, ``reproduced/facts.csv``: for machines without the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from fedbench.data.summary import Counts
from fedbench.errors import UserError
from fedbench.outputs import REPRODUCED, csv_text, write_output
from fedbench.results.strict_csv import StrictCsv

COLUMNS = ("study", "dataset", "split", "key", "n", "positive", "negative")
"""``key`` is that of the data rule and seed (``DataSpec.partition_key``), so that counts of another rule never show."""

Facts = Mapping[tuple[str, str], Counts]
"""Counts by key and split."""


def path_of() -> Path:
    """Return the file with the shipped counts."""
    return REPRODUCED / "facts.csv"


def read_facts() -> Facts:
    """Return the shipped counts.

    Raises:
        UserError: the file is not what ``fedbench export`` writes.
    """
    path = path_of()
    if not path.exists():
        return {}
    sheet = StrictCsv(path)
    if tuple(sheet.columns) != COLUMNS:
        raise UserError(f"{path}: its columns are not {','.join(COLUMNS)}; `fedbench export` writes it")
    facts = dict[tuple[str, str], Counts]()
    for row, line in zip(sheet.rows, sheet.lines, strict=True):
        texts = [row[name] for name in COLUMNS[4:]]
        if not texts[0] or not all(text.isascii() and text.isdigit() for text in filter(None, texts)):
            raise UserError(f"{path}, line {line}: counts are whole numbers, not {', '.join(texts)!r}")
        facts[row["key"], row["split"]] = Counts(*(int(text) if text else None for text in texts))  # type: ignore[arg-type]
    return facts


def add(study: str, counted: Mapping[tuple[str, str, str], Counts]) -> Path:
    """Write counts by dataset, key and split into the file, in place of those that it has of the same ones."""
    new = pd.DataFrame(
        [
            (study, dataset, split, key, counts.n, counts.positive, counts.negative)
            for (dataset, key, split), counts in counted.items()
        ],
        columns=COLUMNS,
    ).astype(dict.fromkeys(COLUMNS[4:], "Int64"))
    path = path_of()
    before = pd.DataFrame(StrictCsv(path).rows if path.exists() else [], columns=COLUMNS)
    before[[*COLUMNS[4:]]] = before[[*COLUMNS[4:]]].replace("", None).astype("Int64")
    rows = pd.concat([before, new]).drop_duplicates(["key", "split"], keep="last")
    return write_output(path, csv_text(rows.sort_values([*COLUMNS[:4]])))
