"""The five corpora of codasca's Tables 3 to 5, as their sources publish them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, Finding, XraySet, read_table
from fedbench.data.decoding import Pictures, last_parts
from fedbench.errors import UserError, unknown

COLUMNS = dict(
    zip(FINDINGS, ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion"), strict=True)
)
Policy = Literal["ones", "zeros", "ignore"]
"""What a finding's uncertain label becomes; ``ignore`` leaves the picture out."""


def labelled(table: pd.DataFrame, policies: Mapping[Finding, Policy], path: Path) -> pd.DataFrame:
    """Turn the labels of CheXpert's labeller (1, 0, -1 for uncertain, blank) into findings of 0 and 1.

    ``policies`` say what a finding's -1 becomes, ``zeros`` by default. UserError, which names ``path``: a label is
    unknown.
    """
    ignored = np.zeros(len(table), dtype=bool)
    result = {}
    for finding, column in COLUMNS.items():
        policy = policies.get(finding, "zeros")
        values = pd.to_numeric(table[column].str.strip().replace("", "0"), errors="coerce")
        if (strange := ~values.isin((-1, 0, 1))).any():
            told = table[column][strange].iloc[0]
            raise UserError(f"{path}, column {column!r}: label {told!r} is none of 1, 0, -1 and blank.")
        uncertain = (values == -1).to_numpy()
        result[finding] = np.where(uncertain, policy == "ones", values == 1).astype(np.int64)
        ignored |= uncertain & (policy == "ignore")
    return table.assign(**result)[~ignored]


def said_of(uncertain: Mapping[Finding, Policy]) -> str:
    """Say for the record how uncertain labels were taken."""
    policies = ", ".join(f"{name} {policy}" for name, policy in sorted(uncertain.items()))
    return f"uncertain labels: {policies}, others zeros"


@dataclass(frozen=True, kw_only=True)
class CheXpert(XraySet):
    """``train.csv`` and ``valid.csv`` with the folders of the full or the small edition, unpacked or in one zip.

    Attributes:
        official: take ``valid.csv`` as the test part (codasca's Table 4), not a share of the patients (Table 3).
        uncertain: what the label -1 becomes, by finding; ``zeros`` for those that are not listed.
        twice: findings whose positives are in the training part twice, as in the program that codasca builds on: with
            them the counts of its Table 5 come out, 227 395 pictures.
    """

    tables: tuple[str, ...] = ("train.csv",)
    depth: int = 3
    official: bool = False
    uncertain: Mapping[Finding, Policy] = field(
        default_factory=lambda: {"edema": "ones", "atelectasis": "ones"}
    )
    twice: tuple[Finding, ...] = ("cardiomegaly", "consolidation")

    def sources(self, folder: Path) -> list[Path]:
        """The table of the training part, and that of the official validation part if it is the test part."""
        return [*super().sources(folder), *([folder / "valid.csv"] if self.official else [])]

    def studies(self, folder: Path) -> pd.DataFrame:
        """Frontal views; ``CheXpert-v1.0(-small)/train/patient00001/study1/view1_frontal.jpg`` by its last parts."""
        parts = []
        for path in self.sources(folder):
            table = read_table(path, ("Path", "Frontal/Lateral", *COLUMNS.values()))
            table = table[table["Frontal/Lateral"].str.strip() == "Frontal"]
            frontal = labelled(table, self.uncertain, path)
            image = frontal["Path"].map(lambda text: last_parts(text, self.depth))
            frontal = frontal.assign(image=image, patient=image.str.split("/").str[0])
            parts.append(frontal.assign(test=path.name == "valid.csv") if self.official else frontal)
        return pd.concat(parts, ignore_index=True)

    def repeated(self, train: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([train, *(train[train[name] == 1] for name in self.twice)], ignore_index=True)

    def remarks(self) -> tuple[str, ...]:
        return (said_of(self.uncertain), f"positives twice: {', '.join(self.twice)}")


NIH: dict[str, str] = {finding: finding.capitalize() for finding in FINDINGS}
KNOWN = (
    "No Finding", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis",
    "Hernia", "Infiltration", "Mass", "Nodule", "Pleural_Thickening", "Pneumonia", "Pneumothorax",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChestXray14(XraySet):
    """``Data_Entry_2017.csv`` or its corrected edition of 2020, and the pictures of the archives, in any folders."""

    tables: tuple[str, ...] = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")

    def studies(self, folder: Path) -> pd.DataFrame:
        """All pictures are frontal; findings are joined by ``|``."""
        (path,) = self.sources(folder)
        table = read_table(path, ("Image Index", "Finding Labels", "Patient ID"))
        listed = table["Finding Labels"].str.split("|").map(lambda names: {name.strip() for name in names})
        if strange := sorted(set().union(*listed) - {*KNOWN}):
            raise UserError(f"{path}: {unknown('finding', strange[0], KNOWN)}")
        findings = {key: listed.map(lambda names, name=name: int(name in names)) for key, name in NIH.items()}
        return pd.DataFrame({"image": table["Image Index"], "patient": table["Patient ID"], **findings})


FRONTAL = ("PA", "AP", "AP_horizontal")


@dataclass(frozen=True, kw_only=True)
class PadChest(XraySet):
    """The table of labels (gzipped or not) and the pictures, in any folders or in one zip.

    A label counts for a finding if it ends with the finding's words: ``laminar atelectasis`` is an atelectasis.
    """

    tables: tuple[str, ...] = (
        "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv",
        "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz",
    )

    def studies(self, folder: Path) -> pd.DataFrame:
        """Frontal projections; ``Labels`` is a list written out as text."""
        (path,) = self.sources(folder)
        table = read_table(path, ("ImageID", "PatientID", "Projection", "Labels"))
        table = table[table["Projection"].str.strip().isin(FRONTAL)]
        listed = [_labels(text, path) for text in table["Labels"]]
        words = dict[str, str](zip(FINDINGS, FINDINGS, strict=True)) | {"effusion": "pleural effusion"}
        findings = {
            finding: [int(any(label.endswith(word) for label in labels)) for labels in listed]
            for finding, word in words.items()
        }
        return pd.DataFrame({"image": table["ImageID"], "patient": table["PatientID"], **findings})


def _labels(text: str, path: Path) -> list[str]:
    """Read ``"['normal', ' pleural effusion']"``; blank is no label."""
    if not text.strip():
        return []
    try:
        labels = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        labels = None
    if not isinstance(labels, list):
        raise UserError(f"{path}, column 'Labels': {text!r} is not a list of labels.")
    return [str(label).strip().lower() for label in labels]


@dataclass(frozen=True, kw_only=True)
class MimicCxr(XraySet):
    """Three tables (gzipped or not) and the pictures ``files/p10/p.../s.../<dicom>.jpg``.

    Labels are CheXpert's, of a study; each of its frontal pictures has them.

    Attributes:
        uncertain: what the label -1 becomes, by finding; ``zeros`` for those that are not listed.
    """

    tables: tuple[str, ...] = ("mimic-cxr-2.0.0-chexpert.csv.gz", "mimic-cxr-2.0.0-chexpert.csv")
    uncertain: Mapping[Finding, Policy] = field(
        default_factory=lambda: {"edema": "ones", "atelectasis": "ones"}
    )

    def sources(self, folder: Path) -> list[Path]:
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
        table = labelled(table, self.uncertain, labels)
        return table.assign(image=table["dicom_id"] + ".jpg", patient=table["subject_id"])

    def remarks(self) -> tuple[str, ...]:
        return (said_of(self.uncertain), "studies without labels are left out")


VINDR = NIH | {"effusion": "Pleural effusion"}
ENDINGS = (".dicom", ".dcm", ".png", ".jpg")


@dataclass(frozen=True, kw_only=True)
class ChestXrayAD(XraySet):
    """``train.csv`` (a row for each box a radiologist drew) or ``image_labels_train.csv`` (for each radiologist).

    Edema is none of its labels, so no picture has it, as Table 5 says. Patients are not known: each picture counts as
    one.

    Attributes:
        vote: a picture has a finding if ``any`` radiologist says so, or the ``majority`` of those who saw it.
    """

    tables: tuple[str, ...] = ("train.csv", "image_labels_train.csv")
    vote: Literal["any", "majority"] = "any"

    def studies(self, folder: Path) -> pd.DataFrame:
        (path,) = self.sources(folder)
        boxes = path.name == self.tables[0]
        named = ["class_name"] if boxes else [name for key, name in VINDR.items() if key != "edema"]
        table = read_table(path, ("image_id", "rad_id", *named))
        said = table[["image_id", "rad_id"]].copy()
        for key, name in VINDR.items():
            said[key] = table["class_name"] == name if boxes else table.get(name, "0") == "1"
        votes = said.groupby(["image_id", "rad_id"]).max().groupby("image_id").mean()
        findings = (votes > (0 if self.vote == "any" else 0.5)).astype(int).reset_index(names="patient")
        return findings.assign(image=findings["patient"] + self._ending(folder, findings["patient"]))

    def _ending(self, folder: Path, images: pd.Series) -> str:
        """Return how the names of the pictures end: DICOM files as published, or converted ones."""
        pictures = Pictures(self.pictures(folder))
        return next(
            (end for end in ENDINGS for image in images[:1] if f"{image}{end}" in pictures), ENDINGS[0]
        )

    def remarks(self) -> tuple[str, ...]:
        return (f"a finding counts if {self.vote} of the radiologists say so",)
