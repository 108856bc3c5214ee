"""Files that are whole or absent, whatever happens while they are written; locks that die with their holder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import platform
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from fedbench.errors import UserError, cannot_read, cannot_write, is_write_error

LARGEST = 1 << 28
"""Bytes a file that is read whole may have."""
Mark = tuple[int, ...]


def read(path: Path, limit: int = LARGEST) -> bytes:
    """Read a whole regular file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is not a regular file, or has more than ``limit`` bytes.
        ReadError: it is there and cannot be read now. That says nothing against its content.
    """
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is not a regular file")
        if facts.st_size > limit:
            raise ValueError(f"it has {facts.st_size} bytes, more than {limit}")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(errno.ENOENT, "it is missing", str(path)) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ValueError(error.strerror) from None
        raise cannot_read(path, error) from None


def mark(path: Path) -> Mark | None:
    """Return what changes about a file when it is written; None where there is none. Errors as in :func:`read`."""
    try:
        facts = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise cannot_read(path, error) from None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path; it becomes ``path`` if the block succeeds and vanishes otherwise.

    What becomes ``path`` has reached the disk: a power cut leaves the old file or the whole new one. What an
    earlier process of this machine left when it was killed is removed.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    temporary = path.parent / temporary_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in stale_temporaries(path.parent, f".{path.name}"):
            left.unlink(missing_ok=True)
        yield temporary
        sync(temporary)
        temporary.replace(path)
    except OSError as error:
        if is_write_error(error):
            raise cannot_write(path, error) from None
        raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> Path:
    """Write a whole file (text as UTF-8 with plain line ends), as :func:`atomic` does; return its path."""
    with atomic(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def check_room(folder: Path, size: int = 1 << 12) -> None:
    """Take ``size`` bytes for a moment: work whose result no disk takes is better not begun.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    probe = folder / temporary_name(".room")
    reserve(probe, size)
    with contextlib.suppress(OSError):
        probe.unlink(missing_ok=True)


def reserve(path: Path, size: int) -> None:
    """Take ``size`` bytes of the disk as a file, which is removed when the room is needed.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    try:
        with path.open("wb") as file:
            _allocate(file.fileno(), size)
            os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise cannot_write(f"the folder {path.parent}, which needs {size:,} bytes", error) from None


def _allocate(descriptor: int, size: int) -> None:
    """Take blocks of the disk for a file; a disk that knows no such call gets zeros."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        for start in range(0, size, 1 << 20):
            os.write(descriptor, bytes(min(1 << 20, size - start)))


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's entries, has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock file ``path``; wait while another process holds it. A process that dies gives it up.

    Args:
        path: the lock file; it is made, and stays.
        on_wait: called once if another process holds the lock.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise cannot_write(path, error) from None
    with file:
        acquire(file.fileno(), on_wait)
        yield


def acquire(descriptor: int, on_wait: Callable[[], object] = lambda: None) -> None:
    """Lock an open file, waiting for the process that holds it.

    Raises:
        UserError: the file system knows no locks.
    """
    try:
        if not try_lock(descriptor):
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise UserError(
            f"the file system has no file locks ({error.strerror}), without which two processes may do the same "
            "work at once; mount it with locks (Lustre: -o flock), or work on another disk"
        ) from None


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless another process holds it; say whether that worked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def alive(pid: int) -> bool:
    """Say whether a process of this machine lives."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it lives, but belongs to someone else
    return True


def stale_temporaries(folder: Path, start: str) -> Iterator[Path]:
    """Yield what dead processes of this machine left in ``folder`` under a name that :func:`temporary_name` made."""
    start = f"{start}.{platform.node()}."
    for path in folder.glob(f"{glob.escape(start)}*.tmp"):
        pid = path.name.removeprefix(start).removesuffix(".tmp")
        if pid.isdigit() and not alive(int(pid)):
            yield path


def temporary_name(start: str) -> str:
    """Return a name for what this process needs for a while, such as ``.table.csv.host.4711.tmp``."""
    return f"{start}.{platform.node()}.{os.getpid()}.tmp"
