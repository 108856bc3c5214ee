"""Files of data: byte-equal archives of arrays, JSON, checksums. All are whole or absent.

A large file is read for its checksum once: a stamp beside it tells the next process.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbench import sealed_json
from fedbench.errors import UserError, cannot_read
from fedbench.files import atomic, mark

LARGE = 1 << 26
"""Bytes from which on a file has a stamp; a smaller one is read in a moment."""


def checksum(path: Path, kind: str = "sha256") -> str:
    """Return the hexadecimal digest of a file (``kind``: any name of :mod:`hashlib`)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def files_below(folder: Path) -> Iterator[str]:
    """Yield the files of a folder and of linked ones in it, by their paths there; a link may lead back.

    Hidden ones, which a system adds by itself (.DS_Store), are no data.
    """
    seen = set[str]()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        within = os.path.relpath(place, folder)
        folders[:] = [name for name in folders if not name.startswith(".")]
        shown = [name for name in names if not name.startswith(".")]
        yield from (name if within == os.curdir else f"{within}/{name}" for name in shown)


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


def write_npy(path: Path, array: np.ndarray) -> str:
    """Write an array as an ``.npy``, atomically; return its SHA-256, which its stamp has, too."""
    with atomic(path) as temporary:
        stored = np.ascontiguousarray(array)
        with temporary.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(stored))
            file.write(stored.data)  # np.save does not say that a disk is full
        sha = checksum(temporary)
    _stamp(path, _state(path), sha)
    return sha


def read_npz(path: Path, cure: str, only: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz``, each checked by its CRC; with ``only``, no others than these.

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
    except Exception as error:  # numpy, zipfile and zlib say of torn or hostile bytes a dozen things
        # a torn archive can end in a seek before its beginning
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise cannot_read(path, error) from None
        raise UserError(f"{path} is truncated or corrupt ({error}). {cure}") from None


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
        raise UserError(f"{path} is truncated or corrupt ({error}). {cure}") from None


def stamp_path(path: Path) -> Path:
    """Return where the stamp of a file or folder lies: its digest, and what of it changes when it is written."""
    path = path.absolute()  # "." has no name
    return path.with_name(f".{path.name}.stamp")


def intact(path: Path, sha: object) -> bool:
    """Say whether a file is there and has this SHA-256; errors as in :func:`digest_of`."""
    try:
        return digest_of(path) == sha
    except FileNotFoundError:
        return False


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, or a digest of all files of a folder, read for it once while nothing changes.

    Raises:
        FileNotFoundError: it is not there.
        ReadError: it cannot be read now.
    """
    try:
        return _digest(path, _state(path))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise cannot_read(error.filename or path, error) from None


def reread(path: Path) -> str:
    """Return the digest of a file or folder, read now whatever a stamp says, and stamp it; an OSError if that fails."""
    state = _state(path)
    if path.is_dir():
        content = [(name, checksum(path / name)) for name in _names(path)]
        sha = hashlib.sha256(repr(content).encode()).hexdigest()
    else:
        sha = checksum(path)
    if state == _state(path):
        _stamp(path, state, sha)
    return sha


def check_all(data_dir: Path) -> Iterator[tuple[Path, str]]:
    """Read all prepared arrays and partitions; yield the path of each, and what is wrong with it or nothing."""
    for summary in sorted([*data_dir.glob("prepared/*.json"), *data_dir.glob("partitions/*/*.json")]):
        try:
            facts = read_json(summary, "It is made again.")
            folder = summary.with_suffix("")
            arrays = {folder / f"{part}.npy": sha for part, sha in facts.get("arrays", {}).items()}
            for path, sha in (arrays or {summary.with_suffix(".npz"): facts.get("sha256")}).items():
                yield path, "" if reread(path) == sha else "it is not what was written"
        except (UserError, OSError) as error:
            yield summary, str(error)


@functools.lru_cache(maxsize=256)
def _digest(path: Path, state: str) -> str:
    with contextlib.suppress(OSError, ValueError, UserError):
        facts = sealed_json.read(stamp_path(path))
        if facts.get("mark") == state and isinstance(sha := facts.get("sha256"), str):
            return sha
    return reread(path)


def _state(path: Path) -> str:
    """Return what changes when a file or a file of a folder is written."""
    if not path.is_dir():
        return repr(mark(path))
    listed = [(name, *(mark(path / name) or ())) for name in _names(path)]
    return hashlib.sha256(repr(listed).encode()).hexdigest()


def _names(folder: Path) -> list[str]:
    """List the regular files of a folder, sorted by folder and name."""
    names = sorted(files_below(folder), key=lambda name: name.split("/"))
    return [name for name in names if (folder / name).is_file()]


def _stamp(path: Path, state: str, sha: str) -> None:
    """Note beside a folder or a large file that what it is in this state has this digest."""
    with contextlib.suppress(UserError, OSError):  # it saves time: a disk that takes none is no obstacle
        if path.is_dir() or path.stat().st_size >= LARGE:
            sealed_json.write(stamp_path(path), {"mark": state, "sha256": sha})
