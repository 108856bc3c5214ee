"""A folder of one's own pictures, listed by a table."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedbench.data.files import checksum
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


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a folder. They are read for it once: a stamp beside the folder tells."""
    listed = tuple(
        (path.relative_to(folder).as_posix(), state.st_size, state.st_mtime_ns)
        for path in sorted(_files(folder))
        if path.is_file() and (state := path.stat())
    )
    return _digest(folder, listed)


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
def _digest(folder: Path, listed: tuple[tuple[str, int, int], ...]) -> str:
    listing = hashlib.sha256(repr([*listed]).encode()).hexdigest()
    if sha := noted(folder, listing):
        return sha
    try:
        content = [(name, checksum(folder / name)) for name, _, _ in listed]
    except OSError as error:
        raise UserError(f"{folder}: a picture cannot be read now ({error})") from None
    sha = hashlib.sha256(repr(content).encode()).hexdigest()
    note(folder, listing, sha)
    return sha
