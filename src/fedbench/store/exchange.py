"""Moves finished runs between machines: a selection as one archive, checked run by run where it arrives.

Nothing in an archive is executed: of its members the plain files of runs are unpacked beside the store
(``tarfile`` with ``filter="data"``), and a run is taken over once its checksums, its key and its specification agree.
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

from fedbench import files
from fedbench.errors import UserError, cannot_write, is_write_error, shortened
from fedbench.store import journal
from fedbench.store.record import FILES, LARGEST, read_run
from fedbench.store.runs import Store

SMALL, PACKED = 1 << 26, 100
"""The files of an archive may have this many bytes, or this many times its own size if that is more."""
_KEY = re.compile(r"[0-9a-f]{16}")
_STAGING = ".import"
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError)
"""What :mod:`tarfile` ends in on files that are not an archive, or on headers that lie or lie in each other."""


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
            if source.is_dir():
                inside = source / "results" / "runs"
                _copy(inside if inside.is_dir() else source, staging)
            else:
                _unpack(source, staging, imported)
            for folder in sorted(staging.iterdir()):
                _place(folder, store, imported)
    except OSError as error:
        raise cannot_write(f"the run store {store.root}", error) from None
    if imported == Imported():
        raise UserError(f"{source} holds no runs")
    return imported


def _copy(source: Path, staging: Path) -> None:
    """Copy the plain files of runs to ``staging/<key>/``."""
    for path in (folder / name for folder in sorted(source.iterdir()) for name in FILES):
        if _KEY.fullmatch(path.parent.name) and path.is_file() and not path.is_symlink():
            (staging / path.parent.name).mkdir(exist_ok=True)
            shutil.copyfile(path, staging / path.parent.name / path.name)


def _unpack(source: Path, staging: Path, imported: Imported) -> None:
    """Unpack the files of runs to ``staging/<key>/``; what is none is passed over."""
    room = max(SMALL, PACKED * source.stat().st_size)
    try:
        with tarfile.open(source) as tar:
            for item in tar:
                *_, key, name = ("", "", *PurePosixPath(item.name).parts)
                if not _KEY.fullmatch(key) or name not in FILES:
                    continue
                room -= item.size
                if not item.isreg() or item.size > LARGEST or (staging / key / name).exists():
                    imported.refused[key] = f"{name} is no plain file, is there twice, or is far too large"
                elif room < 0:
                    raise UserError(
                        f"{source} unpacks to more than {PACKED} times its size: it is not an archive of runs"
                    )
                else:
                    tar.extract(item.replace(name=f"{key}/{name}"), staging, filter="data")
    except _UNREADABLE as error:
        why = shortened(str(error).partition("\n")[0].rstrip(": ")) or "it ends early"
        if not any(staging.iterdir()):
            raise UserError(f"{source} is not an archive of runs ({why})") from None
        imported.refused[source.name] = f"it ends early or is corrupt ({why}): its last runs are missing"
    except OSError as error:
        if is_write_error(error):
            raise
        raise UserError(f"{source} cannot be read ({error.strerror or error})") from None


def _place(folder: Path, store: Store, imported: Imported) -> None:
    """Check a run that was copied beside the store, and move it in unless there is one."""
    key = folder.name
    if key in imported.refused:
        return
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
            shared = ours.files.keys() & theirs.files.keys()
            same = ours.metrics == theirs.metrics and all(ours.files[n] == theirs.files[n] for n in shared)
            if same and ours.files.keys() < theirs.files.keys():  # a model that ours was trained without
                names = [*sorted(theirs.files.keys() - shared), "run.json"]  # the last vouches for the others
                for name in names:
                    files.sync(folder / name)
                    (folder / name).replace(store.path(key) / name)
                imported.new.append(key)
            else:
                (imported.present if same else imported.kept).append(key)
            return
    for path in (*folder.iterdir(), folder):
        files.sync(path)
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
