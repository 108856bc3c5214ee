"""Sets of photographs in folders or archives, behind an account: cats and dogs, ImageNet, skin lesions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, PictureSet
from fedbench.data.datasets._xray import read_table
from fedbench.data.decoding import Pictures, last_parts
from fedbench.data.download import Download
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
        return (Download("dogs-vs-cats.zip", unpacks={"train.zip": None}),)

    def sources(self, folder: Path) -> list[Path]:
        """Accept the unpacked folder as well."""
        return [] if (folder / "train").is_dir() else super().sources(folder)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Decode, resize and split the pictures; class 0 is cat, class 1 is dog."""
        place = raw_dir / "train"
        pictures = Pictures(place if place.is_dir() else raw_dir / "train.zip")
        present = {name for name in pictures.names() if _NAME.fullmatch(name)}
        wanted = [(n, label) for n in range(self.per_class) for label in (0, 1)]
        names = [f"{self.classes[label]}.{n}.jpg" for n, label in wanted]
        if present != set(names):
            odd = sorted(present ^ set(names))[0]
            raise UserError(
                f"{pictures.path} must hold cat.N.jpg and dog.N.jpg for N below {self.per_class}: "
                f"{odd} is {'too much' if odd in present else 'missing'} ({len(present)} of {len(names)})."
            )
        x = pictures.load(names, self.form)
        numbers, labels = np.array(wanted).T
        test = numbers >= self.test_from
        note = f"resized to {self.resized}; test part: numbers {self.test_from} and up"
        return Arrays(x[~test], labels[~test], x[test], labels[test], notes=(note,))


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
        return all((folder / part).is_dir() for part in ("train", "val"))

    def prepare(self, raw_dir: Path) -> Arrays:
        folders = [path for path in (raw_dir / "train").iterdir() if path.is_dir()]
        names = sorted(path.name for path in folders if not path.name.startswith("."))
        if len(names) < 2:
            raise UserError(
                f"{raw_dir / 'train'} has {len(names)} folders of classes: it should have one for each."
            )
        number = {name: place for place, name in enumerate(names)}
        loaded = {}
        for part in ("train", "val"):
            pictures = Pictures(raw_dir / part, depth=2)
            listed = pictures.names()
            owner = self._classes(raw_dir, part, listed)
            if strange := sorted({*owner} - {*number}):
                raise UserError(f"{raw_dir / part}: {strange[0]} is not a class of the folder train.")
            labels = np.array([number[name] for name in owner], dtype=np.int64)
            loaded[part] = pictures.load(listed, self.form), labels
        note = f"resized to {self.resized}; test part: the official validation part"
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


@dataclass(frozen=True, kw_only=True)
class Melanoma(PictureSet):
    """The 256x256 JPEG edition: ``train.csv`` and the pictures, in one zip or unpacked.

    Duplicates (``tfrecord == -1``) are dropped. The test part is the last fifth of the patient-stratified folds in the
    column ``tfrecord`` (LibAUC's rule). Stored at 224x224, the input that the paper's DenseNet121 is made for; the
    prepared arrays take 5 GB.

    Attributes:
        test_share: the share of the folds that is the test part.
    """

    test_share: float = 0.2

    def downloads(self) -> tuple[Download, ...]:
        return (Download("jpeg-melanoma-256x256.zip"),)

    def sources(self, folder: Path) -> list[Path]:
        """Accept the unpacked files as well."""
        unpacked = folder / "train.csv"
        return [unpacked] if unpacked.is_file() and (folder / "train").is_dir() else super().sources(folder)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Drop duplicates, split by patient, decode and resize; class 1 is malignant."""
        source = self.sources(raw_dir)[0]
        unpacked = source.name == "train.csv"
        pictures = Pictures(raw_dir / "train" if unpacked else source)
        content = source.read_bytes() if unpacked else pictures.read("train.csv")
        table = read_table(source, ("image_name", "patient_id", "target", "tfrecord"), content)
        table = table.astype({"target": np.int64, "tfrecord": np.int64})
        table = table[table["tfrecord"] != -1].reset_index(drop=True)
        folds = np.sort(table["tfrecord"].unique())
        last = folds[len(folds) - max(1, round(self.test_share * len(folds))) :]
        test = table["tfrecord"].isin(last).to_numpy()
        names = table["image_name"] + ".jpg"
        pictures.check(names.tolist(), source)
        x_train, x_test = (pictures.load(names[part].tolist(), self.form) for part in (~test, test))
        labels = table["target"].to_numpy()
        patients = table["patient_id"].factorize()[0].astype(np.int64)
        note = f"test part: tfrecord folds {last.min()} to {last.max()}; resized to {self.resized}"
        return Arrays(x_train, labels[~test], x_test, labels[test], patients[~test], notes=(note,))
