"""The run store: one folder per finished run, named by the run's key, whole or absent."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedbench.errors import UserError

STORE = Path("results", "runs")
Rows = Sequence[Mapping[str, float | str]]


@dataclass(frozen=True)
class Record:
    """A finished run.

    Attributes:
        key: the run's key.
        spec: its resolved specification.
        status: ``finished`` or ``diverged``.
        reason: why it diverged.
        metrics: final metrics by name; None where a metric is undefined.
        provenance: commit, versions, hardware, device, times.
        files: SHA-256 of the other files in its folder.
    """

    key: str
    spec: dict[str, Any]
    status: str
    reason: str
    metrics: dict[str, float | None]
    provenance: dict[str, Any]
    files: dict[str, str]


class Store:
    """Finished runs under ``root``. Copying a run's folder in is enough to have the run."""

    def __init__(self, root: Path = STORE) -> None:
        self.root = root

    def path(self, key: str) -> Path:
        """Where the run's folder is or will be."""
        return self.root / key

    def checkpoint(self, key: str) -> Path:
        """Where the checkpoint of the unfinished run lives."""
        return self.root / f"{key}.unfinished" / "checkpoint.pt"

    def keys(self) -> list[str]:
        """List the keys of all finished runs."""
        return sorted(
            path.parent.name for path in self.root.glob("*/run.json") if "." not in path.parent.name
        )

    def load(self, key: str) -> Record | None:
        """Read a finished run; None where there is none.

        Raises:
            UserError: its folder is damaged; the message names it and the cure.
        """
        folder = self.path(key)
        if not folder.exists():
            return None
        try:
            record = Record(**json.loads((folder / "run.json").read_text()))
            for name, sha in record.files.items():
                if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sha:
                    raise ValueError(f"{name} is not what was written")
            if record.key != key:
                raise ValueError(f"it holds the run {record.key}")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise UserError(
                f"run {folder} is damaged ({error}); remove the folder and the run is trained again"
            ) from None
        return record

    def curve(self, key: str) -> Path:
        """Where the run's curve is: one row per evaluation."""
        return self.path(key) / "curve.csv"

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[Path]:
        """Hold the unfinished run's folder; a second process that wants it waits here until the first is done.

        Raises:
            UserError: the store cannot be written.
        """
        folder = self.root / f"{key}.unfinished"
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                lock = (folder / "lock").open("w")
            except FileNotFoundError:
                continue  # the one before us removed the folder between these two lines
            except OSError as error:
                raise UserError(
                    f"cannot write the run store {self.root}: {error.strerror or error}"
                ) from None
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _same_file(lock.fileno(), folder / "lock"):
                break
            lock.close()  # the one before us finished and removed the folder: claim it anew
        try:
            yield folder
        finally:
            if self.path(key).exists():  # finished by another process: whoever claims it from now on finds it so
                shutil.rmtree(folder, ignore_errors=True)
            lock.close()

    def finish(self, record: Record, curve: Rows, clients: Rows = ()) -> Record:
        """Put a run into the store in one step: it is there whole, or not at all. The caller holds its claim.

        Args:
            record: the run; its ``files`` are filled in here.
            curve: one row per evaluation.
            clients: one row per evaluation and traced quantity, where the method traces its clients.
        """
        folder = self.root / f"{record.key}.unfinished"
        ready = folder / "ready"
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir()
        files = {}
        for name, rows in (("curve.csv", curve), ("clients.csv", clients)):
            if rows:
                content = csv_text(rows).encode()
                files[name] = hashlib.sha256(content).hexdigest()
                _write(ready / name, content)
        record = Record(**(vars(record) | {"files": files}))
        _write(ready / "run.json", (json.dumps(vars(record), indent=1, sort_keys=True) + "\n").encode())
        ready.replace(self.path(record.key))
        shutil.rmtree(folder, ignore_errors=True)
        return record


def csv_text(rows: Rows) -> str:
    """Write rows as CSV text; floats in their shortest exact form."""
    buffer = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file beside its place, then rename: readers see the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    _write(temporary, text.encode())
    temporary.replace(path)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
