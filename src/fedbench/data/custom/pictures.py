"""A folder of one's own pictures, listed by a table: PNG, JPEG, DICOM, of 8 or 16 bits."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedbench.data.decoding import decode
from fedbench.data.files import checksum
from fedbench.data.picture import Form
from fedbench.data.stamps import note, noted
from fedbench.errors import UserError


def check_pictures(table: Path, folder: Path, names: Sequence[str]) -> None:
    """Raise UserError, which names one, unless all pictures that a table lists by their places are in a folder."""
    if outside := [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]:
        raise UserError(
            f"{table} lists {outside[0]!r}, which is not in {folder}: what changes outside is not seen; move the "
            "pictures, or link their folder there"
        )
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise UserError(
            f"{folder} lacks {len(missing)} of the {len(names)} pictures that {table} lists, such as {missing[0]!r}: "
            "the column has their places in the folder, with their endings"
        )


def load_pictures(folder: Path, names: Sequence[str], form: Form) -> np.ndarray:
    """Decode pictures by their places in a folder: [n, C, H, W] uint8.

    Raises:
        UserError: one is not a picture, a truncated one for example; it is named.
    """
    return decode(folder, names, [str(folder / name) for name in names], form)


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a folder. They are read for it once: a stamp beside the folder tells."""
    listed = [
        (path.relative_to(folder).as_posix(), state.st_size, state.st_mtime_ns)
        for path in sorted(_files(folder))
        if path.is_file() and (state := path.stat())
    ]
    return _digest(
        folder, hashlib.sha256(repr(listed).encode()).hexdigest(), tuple(name for name, _, _ in listed)
    )


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of linked ones in it; each folder once, as a link may lead back."""
    seen = set[Path]()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := Path(place).resolve()) in seen:
            folders.clear()
        else:
            seen.add(real)
            yield from (Path(place, name) for name in names)


@functools.lru_cache(maxsize=16)
def _digest(folder: Path, listing: str, names: tuple[str, ...]) -> str:
    if sha := noted(folder, listing):
        return sha
    try:
        content = [(name, checksum(folder / name)) for name in names]
    except OSError as error:
        raise UserError(f"{folder}: a picture cannot be read now ({error})") from None
    sha = hashlib.sha256(repr(content).encode()).hexdigest()
    note(folder, listing, sha)
    return sha
