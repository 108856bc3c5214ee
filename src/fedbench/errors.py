"""Errors a user can fix: the message names the thing and the remedy."""

from __future__ import annotations

import contextlib
import difflib
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

_FULL = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or ask for a larger quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "mount its disk writable, or work in a folder that is",
}
_CURES = {
    **_FULL,
    errno.EACCES: "get the permission to use it, or work in another folder",
    errno.EPERM: "get the permission to use it, or work in another folder",
    errno.ENOTDIR: "remove the file that stands in the place of a folder",
    errno.EEXIST: "remove the file that stands in the place of a folder",
    errno.EBUSY: "use another name",
    errno.EIO: "check the disk, which reports errors",
    errno.ESTALE: "mount its disk again",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close other programs: the machine has no file handles left",
    errno.ENOMEM: "free some memory",
    errno.ELOOP: "remove the links that lead in a circle",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EISDIR: "remove the folder that stands in the place of a file",
}
UNUSABLE_DISK = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)
"""A disk that says so takes nothing: room that a run holds on it is of no use."""
AGAIN = "then run the same command again"
"""How every message about a disk ends."""
SHOWN, LINE = 300, 1000
"""Characters of a user's input that a message repeats, and of a line of a message."""


class UserError(Exception):
    """Something the user gave is wrong. The command line prints the message alone and exits with status 2."""


class ListedError(UserError):
    """Several mistakes, each on lines of our own; a line break in any other message came from a name or a file."""


class DiskError(UserError):
    """The disk or the machine, not a file's content. Another run would fail alike: all work stops."""


class WriteError(DiskError):
    """A disk takes no more: full, read-only, over quota. Another source or another run would fail alike."""


class ReadError(DiskError):
    """A file is there and cannot be read now (permission, disk, handles). It is not damaged: it is kept."""


def is_write_error(error: OSError) -> bool:
    """Say whether an error comes from a disk that takes no files, not from a file that cannot be read."""
    return error.errno in _CURES


def is_missing(error: OSError) -> bool:
    """Say whether a file is not there, or something else stands in its place: reading it again would not help."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)


def cannot_write(what: Path | str, error: OSError) -> WriteError:
    """Build the error for a file or place that cannot be written, with the cure that fits the cause."""
    cure = _CURES.get(error.errno or 0, "mend that")
    return WriteError(f"cannot write {what}: {error.strerror or error}; {cure}, {AGAIN}")


def cannot_read(what: Path | str, error: OSError) -> ReadError:
    """Build the error for a file that is there and cannot be read: it stays, and nothing is said against it."""
    cure = _CURES.get(error.errno or 0, "mend that")
    return ReadError(f"cannot read {what} now: {error.strerror or error}. It is kept; {cure}, {AGAIN}")


def explain(error: Exception) -> str:
    """Return what a program prints for an error that its user can mend: a short line, or one for each of several.

    Others are raised again.
    """
    if isinstance(error, ListedError):
        return "\n".join(shortened(line, LINE) for line in str(error).split("\n"))
    if isinstance(error, UserError):
        return shortened(str(error), LINE)
    if lacks_memory(error):
        return shortened(
            f"more memory is needed than is free ({error}): make network, batches or data smaller", LINE
        )
    if not isinstance(error, OSError):
        raise error
    if error.errno in _FULL:
        return shortened(str(cannot_write(error.filename or "a file", error)), LINE)
    if not is_write_error(error):
        raise error
    cure = _CURES[error.errno or 0]
    return shortened(f"cannot use {error.filename or 'a file'}: {error.strerror}; {cure}, {AGAIN}", LINE)


def lacks_memory(error: BaseException) -> bool:
    """Say whether an error is the machine's memory: Python's, numpy's and PyTorch's, which has no name on a CPU."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )


@contextlib.contextmanager
def installed(extra: str, needs: str) -> Iterator[None]:
    """Say, where an import in this block fails, what ``needs`` which package and the ``extra`` of ours that has it."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{needs}: pip install 'fedbench-suite[{extra}]' ({error}).") from None


def visible(text: str) -> str:
    """Show control characters of names and inputs as escapes; line breaks of our own lists stay."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shortened(value: object, limit: int = SHOWN) -> str:
    """Put an input on one short line: the middle of a long one is left out, control characters are escaped."""
    text = value if isinstance(value, str) else repr(value)
    text = visible(text).replace("\n", " ")
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 4 :]}"


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for an unknown name, with the nearest match and the list of known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.")
