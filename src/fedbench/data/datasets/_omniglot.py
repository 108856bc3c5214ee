"""Omniglot: 32 460 drawings of 1 623 characters, with their rotations, for few-shot learning (Lake et al. 2015)."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download
from fedbench.data.files import read_npz
from fedbench.errors import UserError

PACKED = "omniglot28.npz"
SHA256 = "064c72a352f9e549"
"""First digits of the SHA-256 of all images in the order of their paths, 28x28."""
TURNS = 4
TRAIN, HELD, TEST = range(3)
HELD_ALPHABETS = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
"""Background alphabets whose characters are the validation part of Vinyals' split: 172."""
LAST = 423
"""The last characters, sorted by part, alphabet and number, are the test part of that split."""
_ZIPS = {
    "images_background.zip": "68d2efa1b9178cc56df9314c21c6e718",
    "images_evaluation.zip": "6b91aef0f799c5bb55b94e3f2daec811",
}
_FROM = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"


@dataclass(frozen=True, kw_only=True)
class Omniglot(Dataset):
    """Characters of the background alphabets are the training part, those of the evaluation alphabets the test part.

    Each is a class in four rotations (Santoro et al., ICML 2016), ink black on white. The group is the character, so
    that its rotations stay together. Images are scaled to 28x28 by Pillow's Lanczos filter. The raw files are the two
    official archives, or ``omniglot28.npz``, which holds all images scaled so (``images``) and their paths (``path``).
    """

    def downloads(self) -> tuple[Download, ...]:
        return tuple(Download(name, (f"{_FROM}/{name}",), md5) for name, md5 in _ZIPS.items())

    def sources(self, folder: Path) -> list[Path]:
        """Accept the packed images as well."""
        packed = folder / PACKED
        return [packed] if packed.is_file() else super().sources(folder)

    def in_place(self, folder: Path, mirror: str | None) -> Path | None:
        """Packed images are used where they lie."""
        root = Path(mirror or folder).expanduser()
        return next(
            (at for at in (folder, root / (self.raw or self.name), root) if (at / PACKED).is_file()), None
        )

    def cure(self, folder: Path) -> str:
        return f"{super().cure(folder)} Or put {PACKED}, all images scaled to 28x28, into {folder} or the mirror."

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read, scale, turn; a character's four turns are four classes."""
        packed = raw_dir / PACKED
        images, paths = _unpacked(packed) if packed.is_file() else _read(super().sources(raw_dir))
        names, character = np.unique([path.rpartition("/")[0] for path in paths], return_inverse=True)
        images = images if self.ink == "black on white" else 255 - images
        x = np.stack([np.rot90(images, turn, axes=(1, 2)) for turn in range(TURNS)], 1)  # [n, 4, 28, 28]
        y = TURNS * character[:, None] + np.arange(TURNS)
        part = self.parts(names)[character]
        (x_train, y_train), (x_test, y_test) = (
            (x[among].reshape(-1, 1, *images.shape[1:]), y[among].ravel())
            for among in (part != TEST, part == TEST)
        )
        held = np.repeat(part[part != TEST] == HELD, TURNS)
        classes = tuple(
            f"{name.partition('/')[2]} turned {90 * turn}" for name in names.tolist() for turn in range(TURNS)
        )
        note = f"28x28 by Lanczos, ink {self.ink}; a character's rotations by 90 degrees are classes"
        group = np.repeat(character[part != TEST], TURNS)
        return Arrays(
            x_train, y_train, x_test, y_test, group, held_train=held if held.any() else None, classes=classes,
            notes=(note,),
        )  # fmt: skip

    ink: ClassVar[str] = "black on white"

    def parts(self, characters: np.ndarray) -> np.ndarray:
        """Return the part of each character, TRAIN, HELD (official validation) or TEST, by its sorted path."""
        return np.where(np.char.startswith(characters, "images_background"), TRAIN, TEST)


def _unpacked(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the packed images ``[n, 28, 28]`` and their paths ``[n]``, in the order of the paths."""
    arrays = read_npz(
        path, f"Take the two official archives ({', '.join(_ZIPS)}) instead.", ("images", "path")
    )
    order = np.argsort(arrays["path"], kind="stable")
    images, paths = arrays["images"][order], arrays["path"][order]
    if not hashlib.sha256(images.tobytes()).hexdigest().startswith(SHA256):
        raise UserError(
            f"{path}: its images are not Omniglot's (their SHA-256 should begin with {SHA256}). Delete it and take the "
            f"two official archives ({', '.join(_ZIPS)})."
        )
    return images, paths


def _read(archives: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read and scale the images of the archives, in the order of their paths."""
    images, paths = [], []
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith(".png")):
                with Image.open(io.BytesIO(archive.read(name))) as image:
                    scaled = image.convert("L").resize((28, 28), Image.Resampling.LANCZOS)
                images.append(np.asarray(scaled))
                paths.append(name)
    return np.stack(images), np.array(paths)


class Vinyals(Omniglot):
    """The split of torchmeta, which the program reads (353356a, Federated Model-Agnostic Meta-Learning/dataset.py
    93-129): it trains on the first part and measures on the second, the official validation part here
    (``data.validation: own``, metrics ``val_*``); it leaves the third. Ink is white on black.

    Images are scaled by Lanczos here and bilinearly there.
    """

    ink: ClassVar[str] = "white on black"

    def parts(self, characters: np.ndarray) -> np.ndarray:
        alphabets = np.array([path.split("/")[1] for path in characters])
        parts = np.where(np.isin(alphabets, HELD_ALPHABETS), HELD, TRAIN)
        parts[-LAST:] = TEST
        return parts
