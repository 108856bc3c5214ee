"""Patients of several hospitals, in small tables: each hospital is a site."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedbench.data.custom.encoding import Encoding
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download
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
class HospitalSet(Dataset):
    """A table with a row for each patient, standardized by the training part.

    Attributes:
        test_share: the share of each class of each hospital that is the test part.
        hospitals: their names, by their numbers.
    """

    test_share: float = 0.2
    hospitals: ClassVar[tuple[str, ...]]

    def site_names(self) -> tuple[str, ...]:
        return self.hospitals

    def _split(
        self, table: pd.DataFrame, y: np.ndarray, site: np.ndarray, groups: np.ndarray | None = None
    ) -> Arrays:
        """Hold out a test part of each class ``[n]`` 0 or 1 at each hospital ``[n]``, and encode the columns.

        No group ``[n]`` has rows in both parts.
        """
        draws = stream(0, f"{self.raw or self.name} test part")
        test = hold_out(2 * site + y, self.test_share, draws, groups)
        train = np.setdiff1d(np.arange(len(y)), test)
        parts = table.iloc[train], table.iloc[test]
        encoding = Encoding.learned(parts[0], standardize=True)
        note = f"test part: {self.test_share:.0%} of each class at each hospital, drawn once"
        return Arrays(
            encoding.of(parts[0]), y[train], encoding.of(parts[1]), y[test],
            group_train=None if groups is None else groups[train],
            site_train=site[train], site_test=site[test], sites=self.site_names(),
            notes=(note, *encoding.notes(*parts)),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Heart(HospitalSet):
    """A sample is a patient; positive is a narrowed vessel (``num`` above 0).

    What was not measured becomes the training part's median, or a kind of its own; kinds become a feature each, and
    numbers are standardized by the training part. Each patient has one row.
    """

    hospitals = tuple(FILES)

    def downloads(self) -> tuple[Download, ...]:
        address = "https://archive.ics.uci.edu/static/public/45/heart+disease.zip"
        return (Download("heart_disease.zip", (address,), unpacks=dict(FILES.values())),)

    def prepare(self, raw_dir: Path) -> Arrays:
        how: dict[str, Any] = {"header": None, "names": [*COLUMNS], "na_values": "?", "index_col": False}
        tables = [pd.read_csv(raw_dir / name, **how, dtype=np.float64) for name, _ in FILES.values()]
        site = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        table = pd.concat(tables, ignore_index=True)
        y = (table.pop("num") > 0).to_numpy(np.int64)
        table[[*NEVER_ZERO]] = table[[*NEVER_ZERO]].replace(0, np.nan)
        for name in KINDS:
            table[name] = table[name].map(lambda kind: f"{kind:g}", na_action="ignore").astype(object)
        return self._split(table, y, site)


FEATURES = ("age", "sex", "ph.ecog", "ph.karno", "pat.karno", "meal.cal", "wt.loss")
LARGE = ("1", "3", "6", "11", "12", "13", "16", "21", "22")
"""Institutions with at least ten patients; each of the others has fewer."""
REST = "others"
DAYS = 180


@dataclass(frozen=True, kw_only=True)
class Lung(HospitalSet):
    """A sample is a patient of the North Central Cancer Treatment Group; positive is a death within half a year.

    Patients who were followed for less, and one without an institution, are left out. What was not measured becomes the
    training part's median.
    """

    test_share: float = 0.3
    hospitals = (*(f"institution {number}" for number in LARGE), REST)

    def sources(self, folder: Path) -> list[Path]:
        """The file that is read: one in the raw folder, else that of the installed package."""
        package = find_spec("lifelines")  # without importing it
        roots = (package and package.submodule_search_locations) or ()
        places = [folder, *(Path(root) / "datasets" for root in roots)]
        if not (files := [file for place in places if (file := place / "lung.csv").is_file()]):
            raise UserError(
                f"lung.csv is not here: `pip install --no-deps lifelines` brings it, or put it into {folder}"
            )
        return files[:1]

    def prepare(self, raw_dir: Path) -> Arrays:
        table = pd.read_csv(self.sources(raw_dir)[0]).dropna(subset="inst").reset_index(drop=True)
        dead = table["status"] == table["status"].max()  # 1 or 2, by the edition
        table, dead = (part[(table["time"] > DAYS) | dead] for part in (table, dead))
        number = table["inst"].astype(int).astype(str)
        site = pd.Index(LARGE).get_indexer(pd.Index(number)) % len(
            self.hospitals
        )  # -1, of none of them, is the last
        return self._split(table[[*FEATURES]], (dead & (table["time"] <= DAYS)).to_numpy(np.int64), site)


LESIONS = ("HAM10000_metadata.csv", "hmnist_8_8_L.csv")
"""The facts of each picture, and in the same order its pixels."""
FACTS = ("age", "sex", "localization")
MELANOMA = 6
"""In the column ``label`` beside the pixels."""


@dataclass(frozen=True, kw_only=True)
class SkinLesions(HospitalSet):
    """HAM10000: a sample is a picture of 8 x 8 grey pixels with age, sex and body site; positive is a melanoma.

    All pictures of a lesion (a group) lie in one part. An age that is not known becomes the training part's median.
    The first hospital is in Queensland; the others are two collections and an older one in Vienna.
    """

    hospitals = ("rosendahl", "vidir_modern", "vidir_molemax", "vienna_dias")

    def downloads(self) -> tuple[Download, ...]:
        return tuple(Download(name) for name in LESIONS)

    def prepare(self, raw_dir: Path) -> Arrays:
        facts, pixels = (pd.read_csv(raw_dir / name) for name in LESIONS)
        if lacking := sorted({"dataset", "dx", "lesion_id", *FACTS} - {*facts}):
            raise UserError(
                f"{raw_dir / LESIONS[0]} has no column {lacking[0]!r}: Kaggle's copy names no hospitals; take the file "
                "of that name from https://doi.org/10.7910/DVN/DBW86T"
            )
        melanoma = (facts["dx"] == "mel").to_numpy()
        if not np.array_equal(melanoma, pixels["label"] == MELANOMA):
            raise UserError(
                f"{raw_dir}: the rows of {LESIONS[0]} and {LESIONS[1]} are not of the same pictures"
            )
        site = pd.Index(self.hospitals).get_indexer(pd.Index(facts["dataset"]))
        if site.min() < 0:
            raise UserError(f"{raw_dir / LESIONS[0]}: unknown dataset {facts['dataset'][site.argmin()]!r}")
        table = facts[[*FACTS]].join(pixels.filter(like="pixel"))
        groups, _ = pd.factorize(facts["lesion_id"])
        return self._split(table, melanoma.astype(np.int64), site, groups)
