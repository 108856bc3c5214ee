"""Melanoma: SIIM-ISIC 2020, 33 126 pictures of skin lesions, 584 of them malignant."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench.data.dataset import Arrays, PictureSet
from fedbench.data.download import Download
from fedbench.data.images import Pictures
from fedbench.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Melanoma(PictureSet):
    """The 256x256 JPEG edition: ``train.csv`` and the pictures, in one zip or unpacked.

    Duplicates (``tfrecord == -1``) are dropped. The test part is the last fifth of the patient-stratified
    folds in the column ``tfrecord`` (LibAUC's rule), or, without that column, one fifth of the patients
    stratified by label. Stored at 224x224, the input that the paper's DenseNet121 is made for; the prepared
    arrays take 5 GB.

    Attributes:
        test_share: the share of the folds, or of the samples, that is the test part.
    """

    test_share: float = 0.2

    def downloads(self) -> tuple[Download, ...]:
        """The whole edition as Kaggle packs it."""
        return (Download("jpeg-melanoma-256x256.zip"),)

    def sources(self, folder: Path) -> list[Path]:
        """Accept the unpacked files as well."""
        unpacked = folder / "train.csv"
        return [unpacked] if unpacked.is_file() and (folder / "train").is_dir() else super().sources(folder)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Drop duplicates, split by patient, decode and resize; class 1 is malignant."""
        source = self.sources(raw_dir)[0]
        unpacked = source.name == "train.csv"
        with Pictures(raw_dir / "train" if unpacked else source) as pictures:
            table = _table(source.read_bytes() if unpacked else pictures.read("train.csv"), source)
            test, note = self._test_part(table)
            names = [f"{name}.jpg" for name in table["image_name"]]
            if missing := [name for name in names if name not in pictures]:
                raise UserError(
                    f"{pictures.path} lacks {len(missing)} pictures of {source}, e.g. {missing[0]}."
                )
            height, width = self.shape[1:]
            x_train, x_test = (
                pictures.load([names[i] for i in np.flatnonzero(part)], (height, width), draft=self.draft)
                for part in (~test, test)
            )
        labels = table["target"].to_numpy(np.int64)
        patients = table["patient_id"].factorize()[0].astype(np.int64)
        note += f"; resized to {height}x{width}"
        return Arrays(x_train, labels[~test], x_test, labels[test], patients[~test], notes=(note,))

    def _test_part(self, table: pd.DataFrame) -> tuple[np.ndarray, str]:
        """Mark the samples of the test part, and say by which rule."""
        if "tfrecord" in table:
            folds = np.sort(table["tfrecord"].unique())
            last = folds[len(folds) - max(1, round(self.test_share * len(folds))) :]
            note = f"test part: tfrecord folds {last.min()} to {last.max()}"
            return table["tfrecord"].isin(last).to_numpy(), note
        from sklearn.model_selection import StratifiedGroupKFold

        folds = StratifiedGroupKFold(round(1 / self.test_share), shuffle=True, random_state=0)
        _, chosen = next(iter(folds.split(table, table["target"], table["patient_id"])))
        note = "test part: patients drawn, stratified by label (no tfrecord)"
        return np.isin(np.arange(len(table)), chosen), note


def _table(content: bytes, source: Path) -> pd.DataFrame:
    """Read ``train.csv`` without the duplicates."""
    try:
        table = pd.read_csv(io.BytesIO(content))
    except ValueError as error:
        raise UserError(f"{source}: train.csv is not a table ({error}).") from None
    if lacking := {"image_name", "patient_id", "target"} - set(table.columns):
        raise UserError(f"{source}: train.csv has no column {', '.join(sorted(lacking))}.")
    return table[table["tfrecord"] != -1].reset_index(drop=True) if "tfrecord" in table else table


dataset = Melanoma(
    name="melanoma",
    title="Melanoma",
    classes=("benign", "malignant"),
    shape=(3, 224, 224),
    whole_groups=True,
    licence="CC BY-NC 4.0 (SIIM-ISIC 2020, https://doi.org/10.34970/2020-ds01)",
    source="https://www.kaggle.com/datasets/cdeotte/jpeg-melanoma-256x256",
    account=(
        "It needs a Kaggle account: download https://www.kaggle.com/datasets/cdeotte/jpeg-melanoma-256x256 "
        "(jpeg-melanoma-256x256.zip, with train.csv)."
    ),
)
