"""Files are complete or absent, and a lock is waited for; odd YAML from outside is one short line."""

from __future__ import annotations

import errno
import os
import platform
import re
import subprocess
import threading
from pathlib import Path

import pytest

from fedbench import files
from fedbench.errors import UserError
from fedbench.safe_yaml import parse_yaml, read_yaml


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


@pytest.mark.parametrize(
    ("name", "cure"),
    [("file/a", "remove the file that stands in the place of a folder"), (".", "use another name")],
)
def test_a_place_where_no_file_can_be_is_named_with_the_cure(
    name: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a file, and no name at all, as of ``--out ""``."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(UserError, match=f"cannot write {re.escape(name)}: .*{cure}"):
        files.write(Path(name), "new")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("when: 2023-99-99", "month must be in 1..12"),
        ("n: " + "9" * 5000, "limit"),
        ("? [1, 2]\n: 3\n? {a: 1}\n: 2", "unhashable"),
        ("!!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("a: [1", "did not find expected"),
        ("seeds: 1_000", "1_000 is no number in YAML 1.2"),
        ("a: [1,\n  010]", "line 2: 010 is no number"),
        ("a: 1:30", "1:30 is no number"),
        ("a: 1_0.5", "1_0.5 is no number"),
        ("a: 1\nb:\n  c: {x: 1, y: 2,\n      x: 3}", "line 4: 'x' appears a second time"),
    ],
)
def test_what_is_no_yaml_or_read_in_another_sense_is_one_line(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_aliases_stand_for_what_they_name() -> None:
    assert parse_yaml("a: &a {x: 1}\nb: *a\nc: &c 3\nd: *c") == {"a": {"x": 1}, "b": {"x": 1}, "c": 3, "d": 3}


def test_a_key_may_lie_over_what_is_merged() -> None:
    text = "x: &x {a: 1}\nz: {q: &q {<<: *x, a: 3}}\nw: {<<: *q, a: 4}\n1: one\n'1': text"
    assert parse_yaml(text) == {"x": {"a": 1}, "z": {"q": {"a": 3}}, "w": {"a": 4}, 1: "one", "1": "text"}
    assert parse_yaml("") is None
    with pytest.raises(ValueError, match="line 3: '<<' appears a second time"):
        parse_yaml("x: &x {a: 1}\nw: {<<: *x,\n  <<: *x}")


def test_only_a_regular_file_in_utf8_is_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "latin").write_bytes("a: é".encode("latin-1"))
    (tmp_path / "bom").write_bytes("a: 1".encode("utf-8-sig"))
    for name in ("folder", "loop", "latin", "missing", "/dev/null"):
        with pytest.raises(UserError, match=name) as caught:
            read_yaml(tmp_path / name)
        assert "\n" not in str(caught.value)
    assert read_yaml(tmp_path / "bom") == {"a": 1}
