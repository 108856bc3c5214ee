"""The 2D sets of MedMNIST v2 (Yang et al., 2023), by name: one ``.npz`` each, with official training, validation and
test parts.

``pneumoniamnist`` is the 28 x 28 edition, ``pneumoniamnist_64``, ``_128`` and ``_224`` are the larger ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.data.custom.arrays import ALIASES, shaped
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download
from fedbench.data.files import read_npz
from fedbench.errors import installed, unknown

SIZES = (28, 64, 128, 224)
SETS = {
    "pathmnist": ("PathMNIST", 3),
    "chestmnist": ("ChestMNIST", 1),
    "dermamnist": ("DermaMNIST", 3),
    "octmnist": ("OCTMNIST", 1),
    "pneumoniamnist": ("PneumoniaMNIST", 1),
    "retinamnist": ("RetinaMNIST", 3),
    "breastmnist": ("BreastMNIST", 1),
    "bloodmnist": ("BloodMNIST", 3),
    "tissuemnist": ("TissueMNIST", 1),
    "organamnist": ("OrganAMNIST", 1),
    "organcmnist": ("OrganCMNIST", 1),
    "organsmnist": ("OrganSMNIST", 1),
}
"""Title and number of channels of each. Written here: importing medmnist imports torch, which planning does without."""
LICENCES = {"dermamnist": "CC BY-NC 4.0", "chestmnist": "CC BY 4.0; NIH asks to cite Wang et al., CVPR 2017"}


def facts(flag: str) -> Mapping[str, Any]:
    """Return what ``medmnist`` knows of a set: its address, checksum and labels; or say how to install it."""
    with installed("vision", f"{flag} needs medmnist"):
        from medmnist.info import INFO
    known: Mapping[str, Any] = INFO[flag]
    return known


@dataclass(frozen=True, kw_only=True)
class MedSet(Dataset):
    """One set in one size. The training and validation parts lie in ``x_train``, the second marked as held.

    Attributes:
        flag: medmnist's name of it.
        size: height and width of an image.
        finding: of a multi-label set, the label that makes a sample positive; all others are negative.
    """

    flag: str = field(repr=False)
    size: int = 28
    finding: str = ""

    def downloads(self) -> tuple[Download, ...]:
        known, ending = facts(self.flag), "" if self.size == SIZES[0] else f"_{self.size}"
        return (Download(f"{self.flag}{ending}.npz", (known[f"url{ending}"],), known[f"MD5{ending}"]),)

    def cure(self, folder: Path) -> str:
        """Say also what to do with a copy that is of another edition."""
        described = "describe it with file: COPY.npz in config/datasets/NAME.yaml"
        return f"{super().cure(folder)} A copy with another checksum is another edition: {described}."

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the parts: images ``[n, C, size, size]`` uint8; of a multi-label set the column of the finding."""
        path, listed = raw_dir / self.downloads()[0].path, facts(self.flag)["label"]
        labels = tuple(str(listed[number]) for number in sorted(listed, key=int))
        if self.finding and self.finding not in labels:
            raise unknown(f"finding of {self.name}", self.finding, labels)
        column = labels.index(self.finding) if self.finding else 0
        arrays = {ALIASES[name]: array for name, array in read_npz(path, "Fetch it again.").items()}
        arrays |= {name: y[:, column].astype(np.int64) for name, y in arrays.items() if name[0] == "y"}
        note = "the official validation part is the end of x_train: data.validation: own holds it out"
        return Arrays(**shaped(path, "NHWC", arrays), classes=self.classes or labels, notes=(note,))


def named(name: str) -> MedSet | None:
    """Return the set of that name, such as ``breastmnist`` or ``breastmnist_128``; None for any other name."""
    flag, _, size = name.partition("_")
    if flag not in SETS or size not in ("", *map(str, SIZES[1:])):
        return None
    title, channels = SETS[flag]
    side = int(size or SIZES[0])
    return MedSet(
        name=name,
        title=f"{title} {side} x {side}" if size else title,
        flag=flag,
        size=side,
        finding="mass" if flag == "chestmnist" else "",
        classes=("no mass", "mass") if flag == "chestmnist" else (),
        shape=(channels, side, side),
        licence=LICENCES.get(flag, "CC BY 4.0"),
        source="https://medmnist.com (Yang et al., 2023)",
    )
