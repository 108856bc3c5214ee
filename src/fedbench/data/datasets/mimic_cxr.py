"""MIMIC-CXR-JPG (Johnson et al., 2019): 377 110 chest X-rays of 65 379 patients of BIDMC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, XraySet, labelled, read_table
from fedbench.data.datasets.chexpert import COLUMNS
from fedbench.errors import UserError


@dataclass(frozen=True, kw_only=True)
class MimicCxr(XraySet):
    """Three tables (gzipped or not) and the pictures ``files/p10/p.../s.../<dicom>.jpg``.

    Labels are CheXpert's, of a study; each of its frontal pictures has them.

    Attributes:
        uncertain: what the label -1 becomes, by finding; ``zeros`` for those that are not listed.
    """

    tables: tuple[str, ...] = ("mimic-cxr-2.0.0-chexpert.csv.gz", "mimic-cxr-2.0.0-chexpert.csv")
    uncertain: Mapping[str, str] = field(default_factory=lambda: {"edema": "ones", "atelectasis": "ones"})

    def sources(self, folder: Path) -> list[Path]:
        """The tables of labels and of pictures."""
        labels = super().sources(folder)[0]
        return [labels, labels.with_name(labels.name.replace("chexpert", "metadata"))]

    def studies(self, folder: Path) -> pd.DataFrame:
        """Pictures of the views PA and AP whose study has labels."""
        labels, pictures = self.sources(folder)
        said = read_table(labels, ("subject_id", "study_id", *COLUMNS.values()))
        if said["study_id"].duplicated().any():
            raise UserError(f"{labels} lists a study twice.")
        views = read_table(pictures, ("dicom_id", "subject_id", "study_id", "ViewPosition"))
        views = views[views["ViewPosition"].str.strip().isin(("PA", "AP"))]
        table = views.merge(said.drop(columns="subject_id"), on="study_id")
        table = labelled(table, COLUMNS, self.uncertain, labels)
        table = table.assign(image=table["dicom_id"] + ".jpg", patient=table["subject_id"])
        return table[["image", "patient", *FINDINGS]].reset_index(drop=True)

    def remarks(self) -> tuple[str, ...]:
        """Say how uncertain labels were taken."""
        policies = ", ".join(f"{name} {policy}" for name, policy in sorted(self.uncertain.items()))
        return (f"uncertain labels: {policies}, others zeros", "studies without labels are left out")


dataset = MimicCxr(
    name="mimic_cxr",
    title="MIMIC-CXR",
    licence="PhysioNet Credentialed Health Data License",
    source="https://physionet.org/content/mimic-cxr-jpg/",
    account=(
        "It needs a credentialed PhysioNet account: download https://physionet.org/content/mimic-cxr-jpg/ (the folder"
        " files, mimic-cxr-2.0.0-chexpert.csv.gz and mimic-cxr-2.0.0-metadata.csv.gz)."
    ),
)
