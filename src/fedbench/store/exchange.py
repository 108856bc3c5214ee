"""Moves finished runs between machines: a selection as one archive, checked run by run where it arrives.

Names inside an archive never become paths, and nothing in it is executed: a member counts only as one of the three
files of a run, is copied beside the store, and the run is taken over once its checksums, its key and its
specification agree.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fedbench import files
from fedbench.errors import UserError, cannot_read, cannot_write, is_write_error, shortened
from fedbench.store import journal
from fedbench.store.record import FILES, read_run
from fedbench.store.runs import Store

LARGEST = 1 << 28
"""Bytes a file of a run may have; the largest curves are a thousandth of this."""
_KEY = re.compile(r"[0-9a-f]{16}")
_STAGING = ".import"
LARGEST_HEADER = 1 << 20
"""Bytes that one name or other header of an archive may have."""
SMALL, PACKED = 1 << 26, 100
"""An archive may hold this many bytes, or this many times its own size if that is more."""
MOST_REFUSED = 1000
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError)
"""What :mod:`tarfile` ends in on files that are not an archive, or on headers that lie or lie in each other."""
_LONG_NUMBER = re.compile(rb"\d{32}")
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


@dataclass
class Imported:
    """What became of the runs of an archive.

    Attributes:
        new: keys of the runs that were taken over.
        present: those that were here already, with the same numbers.
        kept: those that were here already with other numbers: what was here stays.
        refused: what was not taken, by its name, and why.
    """

    new: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def export_runs(store: Store, keys: Sequence[str], archive: Path) -> None:
    """Write runs into one ``.tar.gz``, whose bytes depend on the runs alone.

    Raises:
        UserError: a run is damaged; no archive is written.
        WriteError: the disk takes no archive.
    """
    for key in keys:
        store.load(key)
    with (
        files.atomic(archive) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for key in sorted(keys):
            for name in FILES:
                path = store.path(key) / name
                if path.is_file():
                    info = tarfile.TarInfo(f"{key}/{name}")
                    info.size = path.stat().st_size
                    with path.open("rb") as content:
                        tar.addfile(info, content)


def _reason(error: Exception) -> str:
    """Return the first line of why an archive cannot be opened: the others list every way that was tried."""
    first = str(error).partition("\n")[0].rstrip(": ")
    return shortened(first) or "it ends early"


def import_runs(store: Store, source: Path) -> Imported:
    """Take the runs of an archive, or of a folder with runs, into the store; bad ones are refused by name.

    Raises:
        UserError: there is no such archive or folder, or it is none.
        WriteError: the store cannot be written; every run is there whole or not at all.
    """
    imported = Imported()
    if not source.exists():
        raise UserError(f"{source} does not exist")
    if not source.is_dir() and not source.is_file():
        raise UserError(f"{source} is a device or a pipe, which may never end; save it as a file first")
    try:
        with _staging(store) as staging:
            _stage(source, staging, imported)
            for folder in sorted(staging.iterdir()):
                if folder.name not in imported.refused:
                    _place(folder, store, imported)
    except OSError as error:
        raise cannot_write(f"the run store {store.root}", error) from None
    if imported == Imported():
        raise UserError(f"{source} holds no runs")
    return imported


def _stage(source: Path, staging: Path, imported: Imported) -> None:
    """Copy the files of runs to ``staging/<key>/``."""
    if source.is_dir():
        inside = source / "results" / "runs"
        for folder in sorted((inside if inside.is_dir() else source).iterdir()):
            for name in FILES:
                path = folder / name
                if _KEY.fullmatch(folder.name) and path.is_file() and not path.is_symlink():
                    try:
                        content = path.open("rb")
                    except OSError as error:
                        raise cannot_read(path, error) from None
                    with content:
                        _copy(content, staging / folder.name / name)
        return
    try:
        with source.open("rb") as raw, _Tar.open(fileobj=raw, mode="r:*") as tar:
            for item in tar:
                if tar.offset > max(SMALL, PACKED * source.stat().st_size):
                    raise UserError(
                        f"{source} unpacks to more than {PACKED} times its size: it is not an archive of runs"
                    )
                if len(imported.refused) > MOST_REFUSED:
                    raise UserError(
                        f"{source} holds more than {MOST_REFUSED} things that are not files of a run"
                    )
                _take(tar, item, staging, imported)
    except _UNREADABLE as error:
        if not imported.refused and not any(staging.iterdir()):
            raise UserError(f"{source} is not an archive of runs ({_reason(error)})") from None
        imported.refused[source.name] = f"it ends early or is corrupt ({error}): its last runs are missing"
    except OSError as error:
        if is_write_error(error):
            raise
        raise UserError(f"{source} cannot be read ({error.strerror or error})") from None


class _Member(tarfile.TarInfo):
    """A member whose header takes no more time than a header needs: Python's search of one grows with its square."""

    def _proc_member(self, tar: Any) -> Any:  # to be overridden, says the library
        if self.type in _PAX:
            block = tar.fileobj.read(-(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
            if _LONG_NUMBER.search(block):
                raise tarfile.ReadError("a header with a number of more than 31 digits")
            tar.fileobj.unread(block)
        return super()._proc_member(tar)  # type: ignore[misc]


class _Tar(tarfile.TarFile):
    """An archive whose headers take no more memory than headers need."""

    tarinfo = _Member

    def __init__(self, name: Any = None, mode: Any = "r", fileobj: Any = None, **options: Any) -> None:
        super().__init__(name, mode, _Reader(fileobj), **options)


class _Reader:
    """A file that refuses to read a large piece at once: content is copied in smaller ones."""

    def __init__(self, file: Any) -> None:
        self._file, self._back = file, b""

    def unread(self, data: bytes) -> None:
        """Let the next :meth:`read` return ``data``."""
        self._back = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        data, self._back = self._back, b""
        return data or bytes(self._file.read(size))


def _take(tar: tarfile.TarFile, item: tarfile.TarInfo, staging: Path, imported: Imported) -> None:
    """Copy one member of an archive, if it is a file of a run; refuse it, and its run, if it pretends to be one."""
    *_, key, name = ("", "", *PurePosixPath(item.name).parts)
    if item.isdir() or key.endswith(".unfinished") or item.name == journal.NAME:
        return
    if not _KEY.fullmatch(key) or name not in FILES:
        imported.refused[item.name] = "it is not a file of a run"
    elif not item.isreg() or item.issparse():
        imported.refused[key] = f"{name} is a link, a device or a file with holes, not a plain file"
    elif item.size > LARGEST:
        imported.refused[key] = f"{name} has {item.size} bytes, more than a run can have"
    elif (staging / key / name).exists():
        imported.refused[key] = f"{name} is there twice"
    else:
        content = tar.extractfile(item)
        assert content is not None
        _copy(content, staging / key / name)


def _copy(content: IO[bytes], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file)
    files.sync(path)


def _place(folder: Path, store: Store, imported: Imported) -> None:
    """Check a run that was copied beside the store, and move it in unless there is one."""
    key = folder.name
    try:
        theirs = read_run(folder, key)
    except ValueError as error:
        imported.refused[key] = str(error).replace(f"{folder}/", "")
        return
    for name in set(FILES) - {"run.json", *theirs.files}:
        (folder / name).unlink(missing_ok=True)
    if store.path(key).exists():
        try:
            ours = read_run(store.path(key), key)
        except ValueError:
            store.set_aside(key)  # damaged: the one that arrives takes its place
        else:
            same = (ours.files, ours.metrics) == (theirs.files, theirs.metrics)
            (imported.present if same else imported.kept).append(key)
            return
    files.sync(folder)
    folder.rename(store.path(key))
    files.sync(store.root)
    journal.note(store.root, "imported", key)
    imported.new.append(key)


@contextlib.contextmanager
def _staging(store: Store) -> Iterator[Path]:
    """Make a folder on the disk of the store, and remove it afterwards, with those of imports that were killed."""
    store.root.mkdir(parents=True, exist_ok=True)
    for left in files.stale_temporaries(store.root, _STAGING):
        shutil.rmtree(left, ignore_errors=True)
    folder = store.root / files.temporary_name(_STAGING)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
