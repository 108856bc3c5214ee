"""Errors a user can mend: the message names the thing and the cure."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path

_CURES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or ask for a larger quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "mount its disk writable, or work in a folder that is",
    errno.EACCES: "get the permission to write there, or work in another folder",
    errno.EPERM: "get the permission to write there, or work in another folder",
    errno.ENOTDIR: "remove the file that stands in the place of a folder",
    errno.EIO: "look after the disk, which reports errors",
    errno.ESTALE: "mount its disk again",
}


class UserError(Exception):
    """Something the user gave is wrong. The command line prints the message alone and exits with status 2."""


class WriteError(UserError):
    """A disk takes no more: full, read-only, over quota. Another source or another run would fail alike."""


def is_write_error(error: OSError) -> bool:
    """Say whether an error comes from a disk that takes no files, not from a file that cannot be read."""
    return error.errno in _CURES


def cannot_write(what: Path | str, error: OSError) -> WriteError:
    """Build the error for a file or place that cannot be written, with the cure that fits the cause."""
    cure = _CURES.get(error.errno or 0, "mend that")
    return WriteError(
        f"cannot write {what}: {error.strerror or error}; {cure}, then run the same command again"
    )


def explain(error: UserError | OSError) -> str:
    """Return the line a program prints for an error that its user can mend; others are raised again."""
    if isinstance(error, UserError):
        return str(error)
    if not is_write_error(error):
        raise error
    return str(cannot_write(error.filename or "a file", error))


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for a name nobody knows, with the nearest match and the list of known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.")
