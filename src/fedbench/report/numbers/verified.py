"""Shipped runs that were trained again, on another machine or by a later code, with the same numbers."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from fedbench import measures
from fedbench.report.files import REPRODUCED, write
from fedbench.report.numbers.rows import AVERAGED, COSTS, DIVERGED
from fedbench.report.numbers.strict_csv import StrictCsv

FILE = REPRODUCED / "verified.csv"
COLUMNS = ("key", "metric", "value", "hardware", "commit", "date")
NUMBER = ["key", "metric"]
"""What names a number of a run."""


def read() -> dict[tuple[str, str], str]:
    """Return on which hardware a number of a run was found again, by (key, metric); empty without the file."""
    if not FILE.is_file():
        return {}
    return {(row["key"], row["metric"]): row["hardware"] for row in StrictCsv(FILE).rows}


def repeated(new: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``new`` that a file has from other hardware or code with the same numbers.

    A run counts as a whole: all of its metrics that both have agree to the digits that tables show. Costs are no
    numbers to be found again; a diverged run is none either.
    """
    old = before[(before["status"] != AVERAGED) & (before["status"] != DIVERGED)]
    both = new[~new["metric"].isin(COSTS)].merge(old, on=NUMBER, suffixes=("", "_before"))
    good = pd.Series(np.array([_again(row) for row in both.to_dict("records")], dtype=bool), both.index)
    return both.loc[good.groupby(both["key"]).transform("all"), list(new.columns)]


def _again(row: Mapping[Hashable, str]) -> bool:
    """Say whether a number was found again: by committed code, not the same on the same hardware."""
    known = measures.find(row["metric"])
    apart = abs(float(row["value"]) - float(row["value_before"]))
    equal = row["value"] == row["value_before"] or apart <= 0.5 * 10.0 ** -(known.decimals if known else 3)
    same = row["commit"] in row["commit_before"].split() and row["hardware"] in row["hardware_before"].split(
        "; "
    )
    return equal and not same and row["commit"] != "" and not row["commit"].endswith("+")


def add(again: pd.DataFrame) -> None:
    """Write numbers that were found again to ``reproduced/verified.csv``; one of the same hardware and code once."""
    known: Sequence[object] = StrictCsv(FILE).rows if FILE.is_file() else []
    today = str(datetime.datetime.now(datetime.UTC).date())
    listed = pd.concat([pd.DataFrame(known, columns=list(COLUMNS)), again.assign(date=today)[list(COLUMNS)]])
    listed = listed.drop_duplicates([*NUMBER, "hardware", "commit"]).sort_values(
        [*NUMBER, "date"], kind="stable"
    )
    write(FILE, listed.to_csv(index=False, lineterminator="\n"))
