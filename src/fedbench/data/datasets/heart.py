"""Heart Disease: four hospitals, 920 patients, 13 measurements each (Detrano et al., 1989; UCI)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench.data.custom.tables import encoded, standardized
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download, RawFile
from fedbench.data.labels import hold_out
from fedbench.errors import UserError
from fedbench.random import stream

FILES = {
    "Budapest": ("processed.hungarian.data", "22e96bee155b5973568101c93b3705f6"),
    "Cleveland": ("processed.cleveland.data", "2d91a8ff69cfd9616aa47b59d6f843db"),
    "Long Beach": ("processed.va.data", "4249d03ca7711e84f4444768c9426170"),
    "Switzerland": ("processed.switzerland.data", "9a87f7577310b3917730d06ba9349e20"),
}
"""The processed file of each hospital, and its MD5; Switzerland is Zurich and Basel."""
COLUMNS = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
    "num",
)  # fmt: skip
KINDS = ("cp", "restecg", "slope", "thal")
"""Columns whose numbers are kinds, of chest pain and the like."""
NEVER_ZERO = ("trestbps", "chol")
"""Where 0 was written for what was not measured: no patient has a blood pressure or cholesterol of 0."""


@dataclass(frozen=True, kw_only=True)
class Heart(Dataset):
    """A sample is a patient; positive is a narrowed vessel (``num`` above 0).

    What was not measured becomes the training part's median, or a kind of its own; kinds become a feature each, and
    numbers are standardized by the training part. Each patient has one row.

    Attributes:
        test_share: the share of each class of each hospital that is the test part.
    """

    test_share: float = 0.2

    def downloads(self) -> tuple[Download, ...]:
        """One archive; four of its files are wanted."""
        address = "https://archive.ics.uci.edu/static/public/45/heart+disease.zip"
        return (
            Download("heart_disease.zip", (address,), None, tuple(RawFile(*file) for file in FILES.values())),
        )

    def site_names(self) -> tuple[str, ...]:
        """The hospitals."""
        return tuple(FILES)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the four tables and hold out a test part at each hospital."""
        tables = [_read(raw_dir / name) for name, _ in FILES.values()]
        site = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        table = pd.concat(tables, ignore_index=True)
        y = (table.pop("num") > 0).to_numpy(np.int64)
        table[[*NEVER_ZERO]] = table[[*NEVER_ZERO]].replace(0, np.nan)
        for name in KINDS:
            table[name] = table[name].map(lambda kind: f"{kind:g}", na_action="ignore").astype(object)
        test = hold_out(2 * site + y, self.test_share, stream(0, "heart test part"))
        train = np.setdiff1d(np.arange(len(y)), test)
        x_train, x_test, notes, numbers = encoded(table.iloc[train], table.iloc[test])
        x_train, x_test = standardized(x_train, x_test, len(numbers))
        note = f"test part: {self.test_share:.0%} of each class at each hospital, drawn once"
        return Arrays(
            x_train, y[train], x_test, y[test], site_train=site[train], site_test=site[test], sites=tuple(FILES),
            notes=(note, *notes),
        )  # fmt: skip


def _read(path: Path) -> pd.DataFrame:
    """Read a table without a header, in which ? is what was not measured."""
    try:
        table = pd.read_csv(
            path, header=None, names=[*COLUMNS], na_values="?", index_col=False, dtype=np.float64
        )
    except ValueError as error:
        raise UserError(
            f"{path} is not a table of {len(COLUMNS)} numbers a row ({error}). Fetch it again."
        ) from None
    if table["num"].isna().any():
        raise UserError(f"{path} has a row without a diagnosis. Fetch it again.")
    return table


dataset = Heart(
    name="heart",
    title="Heart Disease",
    classes=("healthy", "diseased"),
    shape=(25,),
    licence="CC BY 4.0 (UCI)",
    source="UCI Heart Disease (Janosi, Steinbrunn, Pfisterer and Detrano, 1988)",
)
