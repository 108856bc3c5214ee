"""Collections of picture files, in a folder or in a zip, as one array."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image
from tqdm import tqdm

from fedbench.errors import UserError


class Pictures:
    """The files of a folder or of a zip, by file name (folders around them are ignored).

    A zip is read without unpacking it. Use as a context manager.

    Raises:
        UserError: ``path`` does not exist, is no folder and no zip, or holds two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            places = [str(file) for file in path.rglob("*") if file.is_file()]
        else:
            try:
                self._zip = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as error:
                raise UserError(f"{path} is neither a folder nor a zip file ({error}).") from None
            places = [name for name in self._zip.namelist() if not name.endswith("/")]
        self._places: dict[str, str] = {}
        for place in places:
            if self._places.setdefault(PurePosixPath(place).name, place) != place:
                raise UserError(
                    f"{path} holds {PurePosixPath(place).name} twice: give the folder or zip that is meant."
                )

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

    def load(self, names: Sequence[str], size: tuple[int, int]) -> np.ndarray:
        """Decode pictures and resize them bilinearly to (height, width): ``[n, 3, H, W]`` uint8 RGB."""
        array = np.empty((len(names), 3, *size), dtype=np.uint8)
        for row, name in zip(
            array, tqdm(names, desc=self.path.name, disable=None, mininterval=2), strict=True
        ):
            try:
                with Image.open(io.BytesIO(self.read(name))) as picture:
                    small = picture.convert("RGB").resize((size[1], size[0]), Image.Resampling.BILINEAR)
            except (OSError, SyntaxError, Image.DecompressionBombError) as error:
                raise UserError(
                    f"{self.path}: {name} is no readable picture ({error}). Fetch it again."
                ) from None
            row[:] = np.asarray(small).transpose(2, 0, 1)
        return array
