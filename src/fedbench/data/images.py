"""Collections of picture files, in a folder or in a zip, as one array."""

from __future__ import annotations

import io
import math
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image
from tqdm import tqdm

from fedbench.data.files import LARGE
from fedbench.errors import UserError

DICOM = (".dcm", ".dicom")


class Pictures:
    """The files of a folder or of a zip, by file name (folders around them are ignored).

    A zip is read without unpacking it. Use as a context manager.

    Args:
        path: the folder or zip.
        depth: how many last parts of a path name a picture: 1 for its file name, 2 with the folder it lies in.

    Raises:
        UserError: ``path`` does not exist, is no folder and no zip, or holds two files of the same name.
    """

    def __init__(self, path: Path, depth: int = 1) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            places = [file.as_posix() for file in path.rglob("*") if file.is_file()]
        else:
            try:
                self._zip = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as error:
                raise UserError(f"{path} is neither a folder nor a zip file ({error}).") from None
            places = [name for name in self._zip.namelist() if not name.endswith("/")]
        self._places: dict[str, str] = {}
        for place in places:
            name = last_parts(place, depth)
            if self._places.setdefault(name, place) != place:
                raise UserError(f"{path} holds {name} twice: give the folder or zip that is meant.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._zip is not None:
            self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> list[str]:
        """List the file names, sorted."""
        return sorted(self._places)

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        if name not in self._places:
            raise UserError(f"{self.path} has no file {name}.")
        try:
            return self._zip.read(self._places[name]) if self._zip else Path(self._places[name]).read_bytes()
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise UserError(f"{self.path}: {name} is corrupt ({error}). Fetch it again.") from None

    def load(self, names: Sequence[str], size: tuple[int, int], grey: bool = False) -> np.ndarray:
        """Decode pictures and resize them bilinearly to (height, width).

        Pictures of more than 8 bits (and DICOM files) are stretched from their darkest to their brightest value.

        Returns:
            ``[n, 3, H, W]`` uint8 RGB or, with ``grey``, ``[n, 1, H, W]``; more than memory should hold lies in a
            temporary file.
        """
        array = room((len(names), 1 if grey else 3, *size))
        for row, name in zip(
            array, tqdm(names, desc=self.path.name, disable=None, mininterval=2), strict=True
        ):
            try:
                small = _decoded(self.read(name), name).convert("L" if grey else "RGB")
                small = small.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
                raise UserError(
                    f"{self.path}: {name} is no readable picture ({error}). Fetch it again."
                ) from None
            pixels = np.asarray(small)
            row[:] = pixels if grey else pixels.transpose(2, 0, 1)
        return array


def last_parts(path: str, depth: int) -> str:
    """Return the last parts of a path, the file's name included: ``last_parts("a/b/c.png", 2)`` is ``b/c.png``."""
    return "/".join(PurePosixPath(path).parts[-depth:])


def room(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of uint8, in a temporary file if it is large; its content is undefined."""
    if math.prod(shape) < LARGE:
        return np.empty(shape, dtype=np.uint8)
    with tempfile.TemporaryFile() as file:  # the mapping outlives the closed file
        return np.memmap(file, np.uint8, "w+", shape=shape)


def _decoded(content: bytes, name: str) -> Image.Image:
    """Decode a picture to 8 bits a channel."""
    if name.lower().endswith(DICOM):
        return Image.fromarray(_stretched(_dicom(content, name)))
    with Image.open(io.BytesIO(content)) as picture:
        if picture.mode.startswith(("I", "F")):  # 16 or 32 bits
            return Image.fromarray(_stretched(np.asarray(picture)))
        picture.load()
        return picture


def _dicom(content: bytes, name: str) -> np.ndarray:
    """Return a DICOM file's pixels, bright where the body is dense."""
    try:
        import pydicom
        from pydicom.errors import InvalidDicomError
    except ImportError as error:
        raise UserError(f"reading {name} needs pydicom: pip install 'fedbench[vision]' ({error}).") from None
    try:
        found = pydicom.dcmread(io.BytesIO(content))
        pixels: np.ndarray = found.pixel_array.astype(np.float64)
    except (InvalidDicomError, AttributeError, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error)) from None
    return -pixels if found.PhotometricInterpretation == "MONOCHROME1" else pixels  # there white is 0


def _stretched(pixels: np.ndarray) -> np.ndarray:
    """Map the darkest value to 0 and the brightest to 255, uint8; one value alone becomes 0."""
    low, high = float(pixels.min()), float(pixels.max())
    scaled = (pixels.astype(np.float64) - low) * (255 / max(high - low, 1e-9))
    rounded: np.ndarray = scaled.round().astype(np.uint8)
    return rounded
