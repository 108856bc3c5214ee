"""Files of data: byte-equal archives of arrays, JSON, checksums. All are whole or absent."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbench import sealed_json
from fedbench.errors import UserError, cannot_read
from fedbench.files import atomic


def checksum(path: Path, kind: str = "sha256") -> str:
    """Return the hexadecimal digest of a file (``kind``: any name of :mod:`hashlib`)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def files_below(folder: Path) -> Iterator[str]:
    """Yield the files of a folder and of linked ones in it, by their paths there; a link may lead back."""
    seen = set[str]()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        within = os.path.relpath(place, folder)
        yield from (name if within == os.curdir else f"{within}/{name}" for name in names)


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays as an uncompressed ``.npz``, atomically, with bytes that depend on the arrays alone.

    Returns:
        its SHA-256.
    """
    with atomic(path) as temporary:
        contiguous: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with temporary.open("wb") as file:
            np.savez(file, **contiguous)
        return checksum(temporary)


def write_npy(path: Path, array: np.ndarray, decoded: Path) -> str:
    """Write an array as an ``.npy``, atomically; one that is the content of a file in ``decoded`` is that file, too.

    Returns:
        its SHA-256.
    """
    with atomic(path) as temporary:
        if _is_file(array, decoded):
            _link(Path(str(array.filename)), temporary)  # type: ignore[attr-defined]
        else:
            stored = np.ascontiguousarray(array)
            with temporary.open("wb") as file:
                np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(stored))
                file.write(stored.data)  # np.save does not say that a disk is full
        return checksum(temporary)


def _is_file(array: np.ndarray, folder: Path) -> bool:
    """Say whether an array is all of an ``.npy`` of a folder."""
    if not isinstance(array, np.memmap) or Path(str(array.filename)).parent != folder.resolve():
        return False
    stored = np.load(str(array.filename), mmap_mode="r", allow_pickle=False)
    return (stored.shape, stored.dtype) == (array.shape, array.dtype) and array.flags.c_contiguous


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # the file system knows no second name of a file
        shutil.copyfile(source, target)


def read_npz(
    path: Path, cure: str, only: Collection[str] | None = None, delete: str = "Delete it. "
) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz``, each checked by its CRC; with ``only``, no others than these.

    ``delete`` is the advice for a corrupt file: none for one that exists nowhere else.

    Raises:
        UserError: the file is missing, truncated or corrupt; the message names it and ends with ``cure``.
    """
    if not path.is_file():
        raise UserError(f"{path} is missing. {cure}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if only is None or name in only}
    except MemoryError:
        raise UserError(f"{path} does not fit into the memory that is free") from None
    except (
        Exception
    ) as error:  # what numpy, zipfile and zlib say of torn or hostile bytes is of a dozen kinds
        # a torn archive can end in a seek before its beginning
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise cannot_read(path, error) from None
        raise UserError(f"{path} is truncated or corrupt ({error}). {delete}{cure}") from None


def read_json(path: Path, cure: str) -> dict[str, Any]:
    """Read a JSON object and compare it with its checksum.

    Raises:
        UserError: it is missing or not what was written; the message ends with ``cure``.
        ReadError: it cannot be read now.
    """
    try:
        return sealed_json.read(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing. {cure}") from None
    except ValueError as error:
        raise UserError(f"{path} is truncated or corrupt ({error}). Delete it. {cure}") from None
