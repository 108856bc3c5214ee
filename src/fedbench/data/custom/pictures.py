"""What changes with a folder of one's own pictures."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from fedbench.data.decoding import files_below
from fedbench.data.files import checksum
from fedbench.data.stamps import note, noted
from fedbench.errors import UserError


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a folder. They are read for it once: a stamp beside the folder tells."""
    listed = tuple(
        (name, state.st_size, state.st_mtime_ns)
        for name in sorted(files_below(folder), key=lambda name: name.split("/"))
        if (folder / name).is_file() and (state := (folder / name).stat())
    )
    return _digest(folder, listed)


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
