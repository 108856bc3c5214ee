"""ChestX-ray14, the paper's ChestXray8 (Wang et al., CVPR 2017): 112 120 frontal X-rays of 30 805 patients of NIH."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, XraySet, read_table
from fedbench.errors import UserError, unknown

NAMES = {finding: finding.capitalize() for finding in FINDINGS}
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
        findings = {
            key: listed.map(lambda names, name=name: int(name in names)) for key, name in NAMES.items()
        }
        return pd.DataFrame({"image": table["Image Index"], "patient": table["Patient ID"], **findings})


dataset = ChestXray14(
    name="chestxray14",
    title="ChestX-ray14",
    licence="NIH: free use with attribution (Wang et al., 2017)",
    source="https://nihcc.app.box.com/v/ChestXray-NIHCC",
    account=(
        "It is a large folder: download Data_Entry_2017_v2020.csv and the archives images_001 to images_012 from"
        " https://nihcc.app.box.com/v/ChestXray-NIHCC and unpack them."
    ),
)
