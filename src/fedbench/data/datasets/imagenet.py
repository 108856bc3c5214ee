"""ImageNet (ILSVRC 2012): 1 281 167 + 50 000 photographs of 1 000 classes, stored at 64x64."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, PictureSet
from fedbench.data.datasets._xray import read_table
from fedbench.data.download import Download
from fedbench.data.images import Pictures, last_parts
from fedbench.errors import UserError

SOLUTION = "LOC_val_solution.csv"


@dataclass(frozen=True, kw_only=True)
class ImageNet(PictureSet):
    """The folders ``train`` and ``val``, each with a folder for each class (``n01440764``), unpacked.

    ``val`` may hold the pictures flat as they are published, with Kaggle's ``LOC_val_solution.csv`` beside it. Classes
    are numbered in the order of their names. Prepared arrays take 16 GB at 64x64.
    """

    def downloads(self) -> tuple[Download, ...]:
        """The archives of the competition; what is used are the folders."""
        return (Download("train"), Download("val"))

    def sources(self, folder: Path) -> list[Path]:
        """The solution, where there is one; pictures are too many for checksums."""
        return [path for path in [folder / SOLUTION] if path.is_file()]

    def present(self, folder: Path) -> bool:
        """Say whether both folders are there."""
        return all((folder / part).is_dir() for part in ("train", "val"))

    def prepare(self, raw_dir: Path) -> Arrays:
        """List the classes from the folders, decode and resize."""
        names = sorted(path.name for path in (raw_dir / "train").iterdir() if path.is_dir())
        if len(names) < 2:
            raise UserError(
                f"{raw_dir / 'train'} has {len(names)} folders of classes: it should have one for each."
            )
        number = {name: place for place, name in enumerate(names)}
        loaded = {}
        for part in ("train", "val"):
            with Pictures(raw_dir / part, depth=2) as pictures:
                listed = pictures.names()
                owner = self._classes(raw_dir, part, listed)
                if strange := sorted({*owner} - {*number}):
                    raise UserError(f"{raw_dir / part}: {strange[0]} is not a class of the folder train.")
                height, width = self.shape[1:]
                labels = np.array([number[name] for name in owner], dtype=np.int64)
                loaded[part] = pictures.load(listed, (height, width), draft=self.draft), labels
        note = f"resized to {self.shape[1]}x{self.shape[2]}; test part: the official validation part"
        return Arrays(*loaded["train"], *loaded["val"], classes=tuple(names), notes=(note,))

    def _classes(self, raw_dir: Path, part: str, listed: list[str]) -> list[str]:
        """Return the class of each picture: its folder, or what the solution says of it."""
        if part == "train" or not (raw_dir / SOLUTION).is_file():
            return [name.split("/")[0] for name in listed]
        table = read_table(raw_dir / SOLUTION, ("ImageId", "PredictionString"))
        said = dict(zip(table["ImageId"], table["PredictionString"].str.split().str[0], strict=True))
        stems = [Path(last_parts(name, 1)).stem for name in listed]
        if lacking := [stem for stem in stems if stem not in said]:
            raise UserError(f"{raw_dir / SOLUTION} lacks {len(lacking)} pictures of val, e.g. {lacking[0]}.")
        return [said[stem] for stem in stems]


dataset = ImageNet(
    name="imagenet",
    title="ImageNet",
    classes=(),
    shape=(3, 64, 64),
    licence="non-commercial research (ImageNet terms of access)",
    source="https://image-net.org/challenges/LSVRC/2012/",
    account=(
        "It needs an account: download ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from"
        " https://image-net.org/challenges/LSVRC/2012/ (or Kaggle's ImageNet Object Localization Challenge) and unpack"
        " them: a folder train with a folder for each class, and a folder val."
    ),
)
