"""The run store: one folder per finished run, named by the run's key, whole or absent."""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import logging
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from fedbench import files, sealed_json
from fedbench.errors import UserError, cannot_read, cannot_write
from fedbench.store.record import Record, read_record, read_run

log = logging.getLogger(__name__)

STORE = Path("results", "runs")
UNFINISHED, TRAIL, CODE = ".unfinished", "progress.json", "code"
"""The folder of an unfinished run, and the file in it that says where the run is."""
Rows = Sequence[Mapping[str, float | str]]


class Store:
    """Finished runs under ``root``. Copying a run's folder in is enough to have the run."""

    def __init__(self, root: Path = STORE) -> None:
        self.root = root

    def path(self, key: str) -> Path:
        """Where the run's folder is or will be."""
        return self.root / key

    def checkpoint(self, key: str) -> Path:
        """Where the checkpoint of the unfinished run lives."""
        return self._unfinished(key) / "checkpoint.pt"

    def keys(self, damaged: bool = False) -> list[str]:
        """List the keys of all finished runs; with ``damaged``, also of folders in their place that lack the record."""
        try:
            folders = [path for path in self.root.iterdir() if "." not in path.name]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot_read(f"the run store {self.root}", error) from None
        return sorted(path.name for path in folders if damaged or files.mark(path / "run.json"))

    def has(self, key: str) -> bool:
        """Say whether there is a finished run, which may be damaged."""
        return (self.path(key) / "run.json").exists()

    def load(self, key: str) -> Record | None:
        """Read a finished run; None where there is none.

        Raises:
            UserError: its folder is damaged; the message names it and the cure.
            ReadError: it cannot be read now.
        """
        return self._read(key, read_run)

    def record(self, key: str) -> Record | None:
        """Read what a finished run says of itself, as :meth:`load` does, but for a look at its curve and model."""
        return self._read(key, read_record)

    def _read(self, key: str, reader: Callable[[Path, str], Record]) -> Record | None:
        folder = self.path(key)
        if files.mark(folder) is None:
            return None
        try:
            return reader(folder, key)
        except ValueError as error:
            raise UserError(
                f"run {folder} is damaged ({error}); `fedbench store verify --set-aside` moves damaged runs out of the "
                "way, and they are trained again"
            ) from None

    def table(self, key: str, name: str) -> bytes | None:
        """Return a file of a run, ``curve.csv`` or another, as it was written; None where there is none.

        Raises:
            UserError: the run is damaged.
            ReadError: it cannot be read now.
        """
        record = self.load(key)
        if record is None or name not in record.files:
            return None
        return files.read(self.path(key) / name)

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[Path]:
        """Hold the unfinished run's folder; a second process that wants it waits here until the first is done.

        Raises:
            UserError: the store cannot be written.
        """
        folder = self._unfinished(key)
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                lock = (folder / "lock").open("a+")
            except OSError as error:
                if isinstance(error, FileNotFoundError) and self.root.is_dir():
                    continue  # the one before us removed the folder between these two lines
                raise cannot_write(f"the run store {self.root}", error) from None
            files.acquire(lock.fileno(), functools.partial(_tell_waiting, key, lock))
            if _same_file(lock.fileno(), folder / "lock"):
                break
            lock.close()  # the one before us finished and removed the folder: claim it anew
        try:
            with contextlib.suppress(OSError):  # only for the message above
                lock.truncate(0)
                lock.write(f"{os.getpid()} on {platform.node()}")
                lock.flush()
            yield folder
        finally:
            with contextlib.suppress(OSError):
                if self.path(key).exists() or not {path.name for path in folder.iterdir()} - {
                    "lock",
                    TRAIL,
                    CODE,
                }:
                    # finished, perhaps by another process, or nothing worth keeping: the next claim makes it anew
                    shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                lock.close()

    def finish(
        self, record: Record, curve: Rows, clients: Rows = (), kept: Mapping[str, bytes] | None = None
    ) -> Record:
        """Put a run into the store in one step and return what the store has: the run whole, or not at all.

        The caller holds its claim. A run that is there already, imported meanwhile, stays.

        Args:
            record: the run; its ``files`` are filled in here.
            curve: one row per evaluation.
            clients: one row per evaluation and traced quantity, where the method traces its clients.
            kept: what it keeps besides: content by the name of the file.
        """
        folder, path = self._unfinished(record.key), self.path(record.key)
        ready = folder / "ready"
        tables = {"curve.csv": curve, "clients.csv": clients}
        content = {name: csv_text(rows).encode() for name, rows in tables.items() if rows}
        content |= kept or {}
        shas = {name: hashlib.sha256(text).hexdigest() for name, text in content.items()}
        record = Record(**(vars(record) | {"files": shas}))
        content["run.json"] = sealed_json.sealed(vars(record)).encode()
        try:
            shutil.rmtree(ready, ignore_errors=True)
            ready.mkdir(parents=True)  # the claimed folder may be gone: someone tidied up by hand
            for name, text in content.items():
                (ready / name).write_bytes(text)
                files.sync(ready / name)
            files.sync(ready)
            if path.exists():
                # it came from another machine meanwhile: for tables as for curves that is the run
                record = self.load(record.key) or record
            else:
                ready.replace(path)
            files.sync(self.root)
        except OSError as error:
            shutil.rmtree(ready, ignore_errors=True)
            raise cannot_write(f"the finished run {path}", error) from None
        shutil.rmtree(folder, ignore_errors=True)
        return record

    def tidy(self, key: str) -> None:
        """Remove what a process left that was killed between finishing a run and cleaning up after it."""
        if self._unfinished(key).exists() and not self.in_training(key):
            with self.claim(key):
                pass

    def unfinished(self) -> list[str]:
        """List the keys of runs that were begun and are not finished."""
        return sorted(path.name.removesuffix(UNFINISHED) for path in self.root.glob(f"*{UNFINISHED}"))

    def in_training(self, key: str) -> bool:
        """Say whether a living process holds the unfinished run."""
        try:
            with (self._unfinished(key) / "lock").open() as lock:
                return not files.try_lock(lock.fileno())
        except OSError:
            return False

    def holder(self, key: str) -> str:
        """Name the process that holds the unfinished run, or held it last, as ``PID on HOST``; empty where none did."""
        with contextlib.suppress(OSError):
            return (self._unfinished(key) / "lock").read_text()
        return ""

    def set_aside(self, key: str) -> Path:
        """Move a damaged run out of the way, so that it is trained again; return where it is kept."""
        aside = next(path for n in range(1, 1000) if not (path := self.root / f"{key}.damaged{n}").exists())
        self.path(key).rename(aside)
        return aside

    def _unfinished(self, key: str) -> Path:
        return self.root / f"{key}{UNFINISHED}"


def csv_text(rows: Rows) -> str:
    """Write rows as CSV text; floats in their shortest exact form."""
    buffer = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _tell_waiting(key: str, lock: IO[str]) -> None:
    lock.seek(0)
    log.warning("run %s is being trained by process %s: waiting for it", key, lock.read() or "?")


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
