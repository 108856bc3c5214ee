"""Checksums of CSV files that are kept in git: a list ``SHA256SUMS`` in their folder, in the form of ``sha256sum``."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedbench import files
from fedbench.errors import UserError

NAME = "SHA256SUMS"
LARGEST = 1 << 24


def check(folder: Path, path: Path) -> None:
    """Hold a file under ``folder`` against the folder's list; one that is not listed there is a user's own.

    Raises:
        UserError: it is not the file that is listed, or the list cannot be understood.
    """
    try:
        wanted = _listed(folder).get(_name(folder, path))
        if wanted is None or _sha(path) == wanted:
            return
    except FileNotFoundError:
        return  # whoever reads it says so
    except ValueError as error:
        raise UserError(f"{folder / NAME} or {path}: {error}") from None
    raise UserError(
        f"{path} is not the file that {folder / NAME} lists: bring it back or, if you meant it, write the list again "
        f"(make {folder.name}-sums)"
    )


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _listed(folder: Path) -> dict[str, str]:
    """Return the checksum of each file on the list, by its name; none where there is no list."""
    try:
        lines = files.read(folder / NAME, LARGEST).decode().splitlines()
    except FileNotFoundError:
        return {}
    return {name: sha for sha, _, name in (line.partition("  ") for line in lines) if name}


def _sha(path: Path) -> str:
    return hashlib.sha256(files.read(path, LARGEST)).hexdigest()
