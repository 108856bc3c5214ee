"""Whether a file is what was written. A large one is read for that once: a stamp beside it tells the next process."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from fedbench import sealed_json
from fedbench.data.files import checksum, files_below, read_json
from fedbench.errors import UserError, cannot_read
from fedbench.files import Mark, mark

LARGE = 1 << 26
"""Bytes from which on a file has a stamp; a smaller one is read in a moment."""


def stamp_path(path: Path) -> Path:
    """Return where the stamp of a file lies: its checksum, and what of the file changes when it is written."""
    return path.with_name(f".{path.name}.stamp")


def intact(path: Path, sha: object) -> bool:
    """Say whether a file has this SHA-256; one that has not changed since it was asked for is not read again.

    Raises:
        ReadError: it cannot be read now.
    """
    try:
        return sha256(path) == sha
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_read(path, error) from None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read for it once while it does not change.

    Raises:
        OSError: it cannot be read.
    """
    return _sha256(path, mark(path))


def reread(path: Path) -> str:
    """Return the SHA-256 of a file, read now whatever a stamp says, and stamp it; errors as in :func:`sha256`."""
    marked, sha = mark(path), checksum(path)
    if marked == mark(path):
        stamp(path, sha)
    return sha


def stamp(path: Path, sha: str) -> None:
    """Note beside a file, if it is large, that what it is now has this SHA-256."""
    marked = mark(path)
    if marked is not None and path.stat().st_size >= LARGE:
        note(path, list(marked), sha)


def note(path: Path, state: object, sha: str) -> None:
    """Note beside a file or folder that what it is in this state (as JSON has it) has this SHA-256."""
    with contextlib.suppress(UserError, OSError):  # it saves time: a folder that takes none is no obstacle
        sealed_json.write(stamp_path(path), {"mark": state, "sha256": sha})


def noted(path: Path, state: object) -> str | None:
    """Return the SHA-256 that was noted of a file or folder in this state, None where there is none."""
    with contextlib.suppress(OSError, ValueError, UserError):
        facts = sealed_json.read(stamp_path(path))
        if facts.get("mark") == state and isinstance(sha := facts.get("sha256"), str):
            return sha
    return None


def folder_digest(folder: Path) -> str:
    """Return a digest of all files of a folder. They are read for it once: a stamp beside the folder tells."""
    listed = tuple(
        (name, state.st_size, state.st_mtime_ns)
        for name in sorted(files_below(folder), key=lambda name: name.split("/"))
        if (folder / name).is_file() and (state := (folder / name).stat())
    )
    return _folder_digest(folder, listed)


@functools.lru_cache(maxsize=16)
def _folder_digest(folder: Path, listed: tuple[tuple[str, int, int], ...]) -> str:
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
def _sha256(path: Path, marked: Mark | None) -> str:
    return (noted(path, list(marked)) if marked else None) or reread(path)
