"""STL10: 5 000 + 8 000 labelled colour images of 96x96 in 10 classes (Coates, Lee, Ng 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.datasets._torchvision import torchvision_class
from fedbench.data.download import Download, RawFile


@dataclass(frozen=True, kw_only=True)
class Stl10(Dataset):
    """The labelled part; the 100 000 unlabelled images stay in the archive."""

    def downloads(self) -> tuple[Download, ...]:
        """One archive with a binary file for the images and the labels of each part."""
        known = torchvision_class("STL10")
        labelled = [entry for entry in [*known.train_list, *known.test_list] if entry[0] != "unlabeled_X.bin"]
        files = tuple(RawFile(f"{known.base_folder}/{name}", md5) for name, md5 in labelled)
        return (Download(known.filename, (known.url,), known.tgz_md5, files),)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the binary files: ``[n, 3, 96, 96]`` uint8."""
        known = torchvision_class("STL10")
        # without the unlabelled images in its list, torchvision's reader does not insist on them
        labelled = type("Labelled", (known,), {"train_list": known.train_list[:2]})
        train, test = (labelled(raw_dir, split=split) for split in ("train", "test"))
        return Arrays(
            x_train=train.data,
            y_train=train.labels.astype(np.int64),
            x_test=test.data,
            y_test=test.labels.astype(np.int64),
        )


dataset = Stl10(
    name="stl10",
    title="STL10",
    classes=("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"),
    shape=(3, 96, 96),
    licence="none stated; research use, cite Coates, Lee, Ng 2011",
    source="https://cs.stanford.edu/~acoates/stl10/",
)
