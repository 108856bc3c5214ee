"""What the five corpora of chest X-rays share: findings as classes, frontal pictures, patients in one part only."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from fedbench.data.dataset import Arrays, PictureSet
from fedbench.data.decoding import Pictures
from fedbench.data.download import Download
from fedbench.errors import UserError
from fedbench.random import stream

Finding = Literal["cardiomegaly", "edema", "consolidation", "atelectasis", "effusion"]
FINDINGS: tuple[Finding, ...] = get_args(Finding)
"""C0 to C4 of codasca, the five of the CheXpert competition."""

CLASSES = tuple(
    "+".join(name for place, name in enumerate(FINDINGS) if code >> place & 1) or "none"
    for code in range(1 << len(FINDINGS))
)
"""A class for each combination, by the bits of its number: ``labels: {rule: named, positive: [edema]}`` takes all that
have edema."""


@dataclass(frozen=True, kw_only=True)
class XraySet(PictureSet):
    """A corpus: a table with a row for each picture, and a folder or zip with the pictures.

    Without an official test part, ``test_share`` of the patients, drawn once, are the test part.

    Attributes:
        tables: the names a table may have; one has to be there, and ``tables[0]`` is asked for.
        test_share: the share of the patients in the test part.
        depth: how many last parts of a path name a picture (:class:`fedbench.data.decoding.Pictures`).
    """

    tables: tuple[str, ...]
    classes: tuple[str, ...] = CLASSES
    shape: tuple[Literal[1, 3], PositiveInt, PositiveInt] = (1, 320, 320)
    whole_groups: bool = field(default=True, repr=False)
    test_share: float = 0.05
    depth: int = 1

    def downloads(self) -> tuple[Download, ...]:
        """The table; the pictures lie beside it."""
        return (Download(self.tables[0]),)

    def sources(self, folder: Path) -> list[Path]:
        """Take the first of the tables that is there; pictures are too many for checksums."""
        present = [folder / name for name in self.tables if (folder / name).is_file()]
        return (present or [folder / self.tables[0]])[:1]

    @abstractmethod
    def studies(self, folder: Path) -> pd.DataFrame:
        """Return frontal pictures: columns ``image`` (its name as ``depth`` says), ``patient``, and 0 or 1 in each of
        ``FINDINGS``; a column ``test`` of bool where the corpus has a test part."""

    def pictures(self, folder: Path) -> Path:
        """Return where the pictures are: anywhere below the folder, or in its one zip."""
        zips = sorted(folder.glob("*.zip"))
        return zips[0] if len(zips) == 1 else folder

    def prepare(self, raw_dir: Path) -> Arrays:
        table = self.studies(raw_dir)
        if table.empty:
            raise UserError(f"{self.sources(raw_dir)[0]} lists no frontal picture.")
        twice = table["image"].duplicated()
        if twice.any():
            raise UserError(f"{self.sources(raw_dir)[0]} lists {table['image'][twice].iloc[0]} twice.")
        note = "official test part"
        if "test" not in table:
            table = table.assign(test=drawn(table["patient"], self.test_share, self.name))
            note = f"test part: {self.test_share:.0%} of the patients, drawn once"
        parts = [self.repeated(table[~table["test"]]), table[table["test"]]]
        pictures = Pictures(self.pictures(raw_dir), self.depth)
        pictures.check(table["image"].tolist(), self.sources(raw_dir)[0])
        train, test = (pictures.load(part["image"].tolist(), self.form) for part in parts)
        labels = [codes(part) for part in parts]
        patients = parts[0]["patient"].factorize()[0].astype(np.int64)
        return Arrays(
            train, labels[0], test, labels[1], patients,
            notes=(note, f"frontal pictures, grey, resized to {self.resized}", *self.remarks()),
        )  # fmt: skip

    def repeated(self, train: pd.DataFrame) -> pd.DataFrame:
        """Return the training part with the pictures that are to be there more than once."""
        return train

    def remarks(self) -> tuple[str, ...]:
        """Return what else was decided, for the record."""
        return ()

    def count_labels(self, data_dir: Path) -> dict[str, int] | None:
        """Count the classes of all pictures but those of an official test part, from the table alone."""
        folder = self.raw_dir(data_dir)
        if not self.present(folder):
            return None
        table = self.studies(folder)
        table = self.repeated(table[~table["test"]] if "test" in table else table)
        counts = np.bincount(codes(table), minlength=len(CLASSES)).tolist()
        return dict(zip(CLASSES, counts, strict=True))


def codes(table: pd.DataFrame) -> np.ndarray:
    """Return each picture's class, ``[n]`` int64."""
    classes: np.ndarray = table[[*FINDINGS]].to_numpy(np.int64) @ (1 << np.arange(len(FINDINGS)))
    return classes


def drawn(patients: pd.Series, share: float, name: str) -> np.ndarray:
    """Mark the pictures of a random ``share`` of the patients, at least one and not all: ``[n]`` bool."""
    known = np.unique(patients.to_numpy())
    if len(known) < 2:
        raise UserError(f"{name}: a test part of whole patients needs two patients or more.")
    number = min(max(1, round(share * len(known))), len(known) - 1)
    chosen = stream(0, f"{name} test part").permutation(known)[:number]
    return patients.isin(chosen).to_numpy()


def read_table(path: Path, columns: Sequence[str], content: bytes | None = None) -> pd.DataFrame:
    """Read a CSV (gzipped or not, with or without a byte order mark) as text, and check that it has the columns.

    ``content`` is that of a file in the archive ``path``.

    Raises:
        UserError: it is not a table, or lacks a column.
    """
    try:
        file = path if content is None else io.BytesIO(content)
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path} is missing.") from None
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} is not a table ({error}).") from None
    table.columns = table.columns.str.strip()
    if lacking := [name for name in columns if name not in table]:
        raise UserError(f"{path} has no column {', '.join(map(repr, lacking))}.")
    return table
