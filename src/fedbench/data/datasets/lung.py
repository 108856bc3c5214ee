"""Advanced lung cancer in eighteen institutions, 228 patients (Loprinzi et al., 1994); offline, from a package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench.data.custom.tables import encoded, standardized
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.labels import hold_out
from fedbench.errors import UserError
from fedbench.random import stream

FEATURES = ("age", "sex", "ph.ecog", "ph.karno", "pat.karno", "meal.cal", "wt.loss")
LARGE = ("1", "3", "6", "11", "12", "13", "16", "21", "22")
"""Institutions with at least ten patients; each of the others has fewer."""
REST = "others"
DAYS = 180


@dataclass(frozen=True, kw_only=True)
class Lung(Dataset):
    """A sample is a patient of the North Central Cancer Treatment Group; positive is a death within half a year.

    Patients who were followed for less, and one without an institution, are left out. What was not measured becomes the
    training part's median.

    Attributes:
        test_share: the share of each class of each institution that is the test part.
    """

    test_share: float = 0.3

    def site_names(self) -> tuple[str, ...]:
        """The institutions with at least ten patients, by their numbers, and the others together."""
        return (*(f"institution {number}" for number in LARGE), REST)

    def sources(self, folder: Path) -> list[Path]:
        """The file that is read: one in the raw folder, else that of the installed package, if it is there."""
        package = find_spec("lifelines")  # without importing it
        roots = (package and package.submodule_search_locations) or ()
        places = [folder, *(Path(root) / "datasets" for root in roots)]
        return [file for place in places if (file := place / "lung.csv").is_file()][:1]

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the table and hold out a test part at each institution."""
        if not (files := self.sources(raw_dir)):
            raise UserError(
                f"lung.csv is not here: `pip install --no-deps lifelines` brings it, or put it into {raw_dir}"
            )
        table = pd.read_csv(files[0]).dropna(subset="inst").reset_index(drop=True)
        dead = table["status"] == table["status"].max()  # 1 or 2, by the edition
        table, dead = (part[(table["time"] > DAYS) | dead] for part in (table, dead))
        number = table["inst"].astype(int).astype(str)
        site = number.map({name: place for place, name in enumerate(LARGE)}).fillna(len(LARGE))
        site, y = site.to_numpy(np.int64), (dead & (table["time"] <= DAYS)).to_numpy(np.int64)
        test = hold_out(2 * site + y, self.test_share, stream(0, "lung test part"))
        train = np.setdiff1d(np.arange(len(y)), test)
        parts = (table.iloc[at][[*FEATURES]].astype(np.float64) for at in (train, test))
        x_train, x_test, notes, _ = encoded(*parts)
        x_train, x_test = standardized(x_train, x_test)
        note = f"test part: {self.test_share:.0%} of each class at each institution, drawn once"
        return Arrays(
            x_train, y[train], x_test, y[test], site_train=site[train], site_test=site[test],
            sites=self.site_names(), notes=(note, *notes),
        )  # fmt: skip


dataset = Lung(
    name="lung",
    title="Lung cancer",
    classes=("alive after half a year", "dead within half a year"),
    shape=(len(FEATURES),),
    licence="with lifelines (MIT)",
    source="lifelines, lung.csv (Loprinzi et al., Journal of Clinical Oncology 12, 1994)",
)
