"""When a workflow stops because of its disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fedbench import files
from fedbench.errors import AGAIN, WriteError, cannot_read, cannot_write
from fedbench.workflow import disk_guard

FULL = OSError(28, os.strerror(28))


def test_folders_that_are_not_there_yet_are_checked_where_they_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(files, "check_room", asked.append)
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    disk_guard.check_disks(["results/cells/a/b.json", "results/cells/c.json", "logs/x.log"])
    assert asked == [Path(), Path("results")]


@pytest.mark.parametrize(
    ("text", "by_disk"),
    [
        (f"[1/1] a cell\nerror: {cannot_write('x', FULL)}\n", True),
        (f"error: {cannot_read('x', OSError(5, 'Input/output error'))}\n", True),
        (f"error: {cannot_write('x', FULL)}\nfinished\n", False),
        ("error: unknown method 'x'\n", False),
        (f"error: a training was killed, perhaps for lack of memory: use fewer --cores, {AGAIN}\n", False),
        ("Traceback\nOSError: [Errno 28] No space left on device\n", False),
    ],
)
def test_the_last_words_of_a_job_say_whether_it_was_the_disk(
    tmp_path: Path, text: str, by_disk: bool
) -> None:
    (tmp_path / "log").write_text(text)
    assert disk_guard.failed_by_disk(tmp_path / "log") is by_disk


def test_a_job_without_words_failed_by_the_disk_if_that_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").touch()
    assert not disk_guard.failed_by_disk(tmp_path / "log")

    def full(folder: Path) -> None:
        raise WriteError(str(folder))

    monkeypatch.setattr(files, "check_room", full)
    assert disk_guard.failed_by_disk(tmp_path / "log") and disk_guard.failed_by_disk(tmp_path / "none.log")


def test_the_first_failure_by_the_disk_stops_once_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("error: unknown method 'x'\n")
    (tmp_path / "b").write_text(f"error: {cannot_write('x', FULL)}\n")
    failed, stopped = [tmp_path / "a"], threading.Semaphore(0)
    looks: list[int] = []
    looked = threading.Event()

    def logs() -> list[str]:
        looks.append(len(failed))
        if len(looks) == 1:
            raise RuntimeError("the scheduler changed its sets meanwhile")
        if len(looks) > 3:
            looked.set()
        return [str(path) for path in failed]

    judged, judge = list[Path](), disk_guard.failed_by_disk

    def counted(log: Path) -> bool:
        judged.append(log)
        return judge(log)

    monkeypatch.setattr(disk_guard, "failed_by_disk", counted)
    stop: Callable[[], object] = stopped.release
    disk_guard.watch(logs, stop, seconds=0.001)
    assert looked.wait(60) and not stopped.acquire(blocking=False)
    failed.append(tmp_path / "b")
    assert stopped.acquire(timeout=60) and not stopped.acquire(timeout=0.02)
    assert judged == failed, "each log is read once"
