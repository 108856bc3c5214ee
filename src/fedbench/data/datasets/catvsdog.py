"""CATvsDOG: the 25 000 training pictures of Kaggle's Dogs vs. Cats, of all sizes, stored at 50x50."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, PictureSet
from fedbench.data.download import Download, RawFile
from fedbench.data.images import Pictures
from fedbench.errors import UserError

_NAME = re.compile(r"(cat|dog)\.(\d+)\.jpg")


@dataclass(frozen=True, kw_only=True)
class CatVsDog(PictureSet):
    """``train.zip`` of the competition, or its unpacked folder ``train``.

    Attributes:
        per_class: how many pictures each class has, numbered from 0.
        test_from: the pictures from this number on are the test part: the last 5 000 in the order of the
            numbers, half of them cats (LibAUC takes the last 5 000 too; in the order of file names they would
            all be dogs).
    """

    per_class: int = 12_500
    test_from: int = 10_000

    def downloads(self) -> tuple[Download, ...]:
        """The competition's whole download, or the part of it that is wanted."""
        return (Download("dogs-vs-cats.zip", unpacks=(RawFile("train.zip"),)),)

    def sources(self, folder: Path) -> list[Path]:
        """Accept the unpacked folder as well."""
        return [] if (folder / "train").is_dir() else super().sources(folder)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Decode, resize and split the pictures; class 0 is cat, class 1 is dog."""
        place = raw_dir / "train"
        with Pictures(place if place.is_dir() else raw_dir / "train.zip") as pictures:
            present = {name for name in pictures.names() if _NAME.fullmatch(name)}
            wanted = [(n, label) for n in range(self.per_class) for label in (0, 1)]
            names = [f"{self.classes[label]}.{n}.jpg" for n, label in wanted]
            if present != set(names):
                odd = sorted(present ^ set(names))[0]
                raise UserError(
                    f"{pictures.path} must hold cat.N.jpg and dog.N.jpg for N below {self.per_class}: "
                    f"{odd} is {'too much' if odd in present else 'missing'} ({len(present)} of {len(names)})."
                )
            height, width = self.shape[1:]
            x = pictures.load(names, (height, width), draft=self.draft)
        numbers, labels = np.array(wanted).T
        test = numbers >= self.test_from
        note = f"resized to {self.shape[1]}x{self.shape[2]}; test part: numbers {self.test_from} and up"
        return Arrays(x[~test], labels[~test], x[test], labels[test], notes=(note,))


dataset = CatVsDog(
    name="catvsdog",
    title="CATvsDOG",
    classes=("cat", "dog"),
    shape=(3, 50, 50),
    licence="Kaggle competition rules; not redistributable",
    source="https://www.kaggle.com/c/dogs-vs-cats",
    account=(
        "It needs a Kaggle account: accept the rules at https://www.kaggle.com/c/dogs-vs-cats, "
        "download train.zip (25 000 pictures)."
    ),
)
