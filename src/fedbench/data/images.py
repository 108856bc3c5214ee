"""Collections of picture files, in a folder or in a zip, as one array."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from fedbench.data.decoding import decode
from fedbench.data.picture import Form
from fedbench.errors import UserError


class Pictures:
    """The files of a folder or of a zip, by file name (folders around them are ignored).

    A zip is read without unpacking it. Use as a context manager.

    Args:
        path: the folder or zip.
        depth: how many last parts of a path name a picture: 1 for its file name, 2 with the folder it lies in.

    Raises:
        UserError: ``path`` does not exist, is neither a folder nor a zip, or holds two files of the same name.
    """

    def __init__(self, path: Path, depth: int = 1) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            places = [f"{folder}/{name}" for folder, _, names in os.walk(path) for name in names]
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

    def __exit__(self, *error: object) -> None:
        if self._zip is not None:
            self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> list[str]:
        """List the file names, sorted."""
        return sorted(self._places)

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        place = self._place(name)
        try:
            return self._zip.read(place) if self._zip else Path(place).read_bytes()
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise UserError(f"{self.path}: {name} is corrupt ({error}). Fetch it again.") from None

    def load(
        self, names: Sequence[str], size: tuple[int, int], grey: bool = False, draft: bool = False
    ) -> np.ndarray:
        """Decode pictures and resize them to (height, width); see :class:`fedbench.data.picture.Form`.

        Returns:
            ``[n, 3, H, W]`` uint8 RGB or, with ``grey``, ``[n, 1, H, W]``, mapped from a file.

        Raises:
            UserError: a file is not there, or is not a picture.
        """
        places = [self._place(name) for name in names]
        return decode(self.path, names, places, Form(size, grey, draft))

    def _place(self, name: str) -> str:
        if name not in self._places:
            raise UserError(f"{self.path} has no file {name}.")
        return self._places[name]


def last_parts(path: str, depth: int) -> str:
    """Return the last parts of a path, the file's name included: ``last_parts("a/b/c.png", 2)`` is ``b/c.png``."""
    return "/".join([part for part in path.split("/") if part not in ("", ".")][-depth:])
