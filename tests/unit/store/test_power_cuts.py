"""What has its final name has reached the disk before: a power cut leaves it whole, or not there."""

from __future__ import annotations

import os
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
        self.moved, self.unsure = list[tuple[Path, set[str]]](), set[Path]()
        self._safe = set[tuple[int, int]]()  # inodes, and when they were written

    def fsync(self, descriptor: int) -> None:
        self._safe.add(_state(os.fstat(descriptor)))
        self.unsure.discard(Path(f"/proc/self/fd/{descriptor}").readlink())

    def rename(self, old: Any, new: Any) -> None:
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

    def watch(name: str, see: Any) -> None:
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given: [see(*given), original(*given)])

    watch("fsync", disk.fsync), watch("rename", disk.rename), watch("replace", disk.rename)
    return disk


def test_a_run_that_finished_or_came_and_a_file(
    other_store: Store, this_store: Store, disk: Disk, tmp_path: Path
) -> None:
    runs = [add(this_store, 7), *import_runs(this_store, other_store.root).new]
    files.write(tmp_path / "result.json", "{}")
    named = [*map(this_store.path, runs), tmp_path / "result.json"]
    assert disk.moved == [(path, set()) for path in named] and len(named) == 5
    assert disk.unsure <= {tmp_path}, "a folder of results"
