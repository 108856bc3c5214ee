"""Files are complete or absent, what dead processes left goes, and a lock is waited for."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import threading
from pathlib import Path

import pytest

from fedbench import files


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"four")
    assert files.read(tmp_path / "a", limit=4) == b"four"
    with pytest.raises(ValueError, match="it has 4 bytes, more than 3"):
        files.read(tmp_path / "a", limit=3)


def test_a_write_removes_what_dead_processes_of_this_machine_left_of_the_same_file(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    node = platform.node()
    stay = [f".a.{node}.{os.getppid()}.tmp", f".a.elsewhere.{dead.pid}.tmp", f".b.{node}.{dead.pid}.tmp"]
    for name in (f".a.{node}.{dead.pid}.tmp", *stay):
        (tmp_path / name).touch()
    files.write(tmp_path / "a", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"a", *stay}


def test_a_process_of_another_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert files.alive(1)


@pytest.mark.parametrize("known", [True, False])
def test_room_is_taken_to_the_byte_and_given_back(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a disk that cannot take blocks for a file without writing them."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    if not known:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    files.reserve(tmp_path / "reserve", (1 << 20) + 5)
    assert (tmp_path / "reserve").stat().st_size == (1 << 20) + 5
    files.check_room(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["reserve"]


def test_a_lock_that_is_held_is_waited_for_and_that_is_said_once(tmp_path: Path) -> None:
    said, events = threading.Event(), list[str]()

    def wait() -> None:
        with files.locked(tmp_path / "lock", said.set):
            events.append("second")

    with files.locked(tmp_path / "lock", lambda: events.append("waited for nothing")):
        second = threading.Thread(target=wait)
        second.start()
        assert said.wait(60)
        events.append("first")
    second.join()
    assert events == ["first", "second"]
