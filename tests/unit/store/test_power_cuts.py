"""What has its final name has reached the disk before: a power cut leaves it whole, or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import add

from fedbench import files
from fedbench.store.exchange import import_runs
from fedbench.store.runs import Store


class Disk:
    """Sees what reaches the disk, and what is renamed.

    Attributes:
        moved: what took its final name, in order; with what of it was not on the disk.
        unsure: folders whose entries have changed since they were last on the disk.
    """

    def __init__(self) -> None:
        self.moved: list[tuple[Path, set[str]]] = []
        self.unsure: set[Path] = set()
        self._safe: set[tuple[int, int]] = set()  # inodes, and when they were written

    def sync(self, descriptor: int) -> None:
        self._safe.add(_state(os.fstat(descriptor)))
        self.unsure.discard(Path(f"/proc/self/fd/{descriptor}").readlink())

    def move(self, old: Any, new: Any) -> None:
        old, new = Path(old), Path(new)
        lost = {path.name for path in (old, *old.rglob("*")) if _state(path.stat()) not in self._safe}
        self.moved.append((new, lost))
        self.unsure.add(new.parent)


def _state(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_ino, facts.st_mtime_ns


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk, watched."""
    disk = Disk()

    def watched(name: str, see: Callable[..., None]) -> None:
        original = getattr(os, name)

        def act(*args: Any) -> None:
            see(*args)
            original(*args)

        monkeypatch.setattr(os, name, act)

    for name, see in (("fsync", disk.sync), ("rename", disk.move), ("replace", disk.move)):
        watched(name, see)
    return disk


def test_a_finished_run(this_store: Store, disk: Disk) -> None:
    key = add(this_store, 0)
    assert disk.moved == [(this_store.path(key), set())] and disk.unsure == set()


def test_an_imported_run(other_store: Store, this_store: Store, disk: Disk) -> None:
    keys = import_runs(this_store, other_store.root).new
    assert disk.moved == [(this_store.path(key), set()) for key in keys] != [] and disk.unsure == set()


def test_a_file(tmp_path: Path, disk: Disk) -> None:
    files.write(tmp_path / "result.json", "{}")
    assert disk.moved == [(tmp_path / "result.json", set())]
