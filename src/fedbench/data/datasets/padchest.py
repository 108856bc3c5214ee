"""PadChest (Bustos et al., 2020): 160 868 chest X-rays of 67 625 patients of Hospital San Juan, 16-bit PNG."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedbench.data.datasets._xray import FINDINGS, XraySet, read_table
from fedbench.errors import UserError

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
        words = {finding: f"pleural {finding}" if finding == "effusion" else finding for finding in FINDINGS}
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


dataset = PadChest(
    name="padchest",
    title="PadChest",
    licence="BIMCV: research use, with registration",
    source="https://bimcv.cipf.es/bimcv-projects/padchest/",
    account=(
        "It needs a registration: download the pictures and PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv from"
        " https://bimcv.cipf.es/bimcv-projects/padchest/."
    ),
)
