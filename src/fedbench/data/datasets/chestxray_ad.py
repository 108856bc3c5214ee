"""VinDr-CXR, the paper's ChestXrayAD (Nguyen et al., 2020): 15 000 training X-rays of two hospitals in Hanoi."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, XraySet, read_table
from fedbench.data.images import Pictures
from fedbench.errors import UserError

NAMES = {finding: finding.capitalize() for finding in FINDINGS} | {"effusion": "Pleural effusion"}
ENDINGS = (".dicom", ".dcm", ".png", ".jpg")
VOTES = ("any", "majority")


@dataclass(frozen=True, kw_only=True)
class ChestXrayAD(XraySet):
    """``train.csv`` (a row for each box a radiologist drew) or ``image_labels_train.csv`` (for each radiologist).

    Edema is none of its labels, so no picture has it, as Table 5 says. Patients are not known: each picture counts as
    one.

    Attributes:
        vote: a picture has a finding if ``any`` radiologist says so, or the ``majority`` of those who saw it.
    """

    tables: tuple[str, ...] = ("train.csv", "image_labels_train.csv")
    vote: str = "any"

    def studies(self, folder: Path) -> pd.DataFrame:
        """One row a picture, from the rows of its radiologists."""
        if self.vote not in VOTES:
            raise UserError(f"{self.name}: vote is {' or '.join(VOTES)}, not {self.vote!r}")
        (path,) = self.sources(folder)
        table = read_table(path, ("image_id", "rad_id"))
        if "class_name" in table:
            said = pd.DataFrame(
                {key: (table["class_name"] == name).astype(int) for key, name in NAMES.items()}
            )
        else:
            read_table(path, [name for key, name in NAMES.items() if key != "edema"])
            said = pd.DataFrame(
                {key: table[name].eq("1").astype(int) if name in table else 0 for key, name in NAMES.items()}
            )
        said = said.set_axis(table.index).assign(image_id=table["image_id"], rad_id=table["rad_id"])
        by_radiologist = said.groupby(["image_id", "rad_id"], sort=True).max()
        votes = by_radiologist.groupby(level="image_id").mean()
        findings = (votes > (0 if self.vote == "any" else 0.5)).astype(int).reset_index()
        ending = self._ending(folder, findings["image_id"])
        return findings.assign(image=findings["image_id"] + ending, patient=findings["image_id"]).drop(
            columns="image_id"
        )

    def _ending(self, folder: Path, images: pd.Series) -> str:
        """Return how the names of the pictures end: DICOM files as published, or converted ones."""
        if images.empty:
            return ENDINGS[0]
        with Pictures(self.pictures(folder)) as pictures:
            return next((end for end in ENDINGS if f"{images.iloc[0]}{end}" in pictures), ENDINGS[0])

    def remarks(self) -> tuple[str, ...]:
        """Say how radiologists were counted."""
        return (f"a finding counts if {self.vote} of the radiologists say so",)


dataset = ChestXrayAD(
    name="chestxray_ad",
    title="ChestXrayAD",
    licence="PhysioNet Credentialed Health Data License",
    source="https://www.kaggle.com/c/vinbigdata-chest-xray-abnormalities-detection",
    account=(
        "It needs an account: download train.csv and the folder train of"
        " https://www.kaggle.com/c/vinbigdata-chest-xray-abnormalities-detection, or VinDr-CXR from"
        " https://physionet.org/content/vindr-cxr/ (image_labels_train.csv and the folder train)."
    ),
)
