"""CheXpert (Irvin et al., AAAI 2019): 224 316 chest X-rays of 65 240 patients of Stanford Hospital."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, XraySet, labelled, named, read_table

COLUMNS = dict(
    zip(FINDINGS, ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion"), strict=True)
)


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
    uncertain: Mapping[str, str] = field(default_factory=lambda: {"edema": "ones", "atelectasis": "ones"})
    twice: tuple[str, ...] = ("cardiomegaly", "consolidation")

    def sources(self, folder: Path) -> list[Path]:
        """The table of the training part, and that of the official validation part if it is the test part."""
        return [*super().sources(folder), *([folder / "valid.csv"] if self.official else [])]

    def studies(self, folder: Path) -> pd.DataFrame:
        """Frontal views; ``CheXpert-v1.0(-small)/train/patient00001/study1/view1_frontal.jpg`` by its last parts."""
        parts = []
        for path in self.sources(folder):
            table = read_table(path, ("Path", "Frontal/Lateral", *COLUMNS.values()))
            table = table[table["Frontal/Lateral"].str.strip() == "Frontal"]
            frontal = labelled(table, COLUMNS, self.uncertain, path)
            image = named(frontal["Path"], self.depth)
            frontal = frontal.assign(image=image, patient=image.str.split("/").str[0])
            frontal = frontal[["image", "patient", *FINDINGS]]
            parts.append(frontal.assign(test=path.name == "valid.csv") if self.official else frontal)
        return pd.concat(parts, ignore_index=True)

    def repeated(self, train: pd.DataFrame) -> pd.DataFrame:
        """Add the positives of the findings in ``twice`` once more."""
        return pd.concat([train, *(train[train[name] == 1] for name in self.twice)], ignore_index=True)

    def remarks(self) -> tuple[str, ...]:
        """Say how uncertain labels were taken and what is there twice."""
        policies = ", ".join(f"{name} {policy}" for name, policy in sorted(self.uncertain.items()))
        return (f"uncertain labels: {policies}, others zeros", f"positives twice: {', '.join(self.twice)}")


dataset = CheXpert(
    name="chexpert",
    title="CheXpert",
    licence="Stanford University Dataset Research Use Agreement",
    source="https://stanfordmlgroup.github.io/competitions/chexpert/",
    account=(
        "It needs a registration: ask for CheXpert-v1.0 or CheXpert-v1.0-small at"
        " https://stanfordmlgroup.github.io/competitions/chexpert/ and unpack it: train.csv, valid.csv and the folders"
        " train and valid."
    ),
)
