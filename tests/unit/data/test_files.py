"""Files of data are whole or absent; a large one is read once for its checksum, by all processes together."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedbench.data import files
from fedbench.data.files import checksum, intact, read_json, read_npz, stamp_path, write_npy, write_npz
from fedbench.errors import ReadError, UserError

ARRAYS = {"a": np.arange(1000).reshape(10, 100), "b": np.ones((3, 2), np.float32)}


def test_npz_comes_back_and_its_bytes_do_not_depend_on_the_day(tmp_path, monkeypatch):
    write_npz(tmp_path / "one.npz", ARRAYS)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    write_npz(tmp_path / "two.npz", ARRAYS)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    back = read_npz(tmp_path / "one.npz", "")
    assert list(back) == ["a", "b"]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_truncated_npz_names_the_file_and_the_cure(tmp_path, share):
    path = tmp_path / "cut.npz"
    write_npz(path, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=r"cut\.npz is truncated or corrupt.*Do this\."):
        read_npz(path, "Do this.")


@pytest.mark.parametrize("text", ["", '{"a": 1', "[1, 2]", "\x00"])
def test_broken_json_names_the_file_and_the_cure(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=r"x\.json .*Do this\."):
        read_json(tmp_path / "x.json", "Do this.")


def test_what_cannot_be_read_now_is_not_called_corrupt(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.zeros(10)})

    def fails(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(np, "load", fails)
    with pytest.raises(ReadError, match="It is kept"):
        read_npz(path, "Do this.")


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x[:0]])
def test_npy_comes_back(tmp_path: Path, part: Callable[[np.ndarray], np.ndarray]) -> None:
    sha = write_npy(tmp_path / "x.npy", part(ARRAYS["a"]))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), part(ARRAYS["a"]))
    assert sha == checksum(tmp_path / "x.npy") and [*tmp_path.iterdir()] == [tmp_path / "x.npy"]


CONTENT = bytes(range(256)) * 40


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read; nothing is remembered in this process, as if each question came from another."""
    collected: list[Path] = []
    monkeypatch.setattr(files, "checksum", lambda path: collected.append(path) or checksum(path))
    monkeypatch.setattr(files, "_digest", files._digest.__wrapped__)
    monkeypatch.setattr(files, "LARGE", 1000)
    return collected


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "a.npz"
    path.write_bytes(CONTENT)
    return path


def test_a_file_is_read_by_the_first_process_alone(large: Path, reads: list[Path]) -> None:
    sha = checksum(large)
    assert [intact(large, sha) for _ in range(3)] == [True] * 3
    assert reads == [large] and not intact(large, "0" * 64)


@pytest.mark.parametrize("what", ["byte", "touched", "replaced", "kept time"])
def test_a_file_that_has_changed_is_read_again(large: Path, reads: list[Path], what: str) -> None:
    sha, times = checksum(large), large.stat()
    assert intact(large, sha)
    time.sleep(0.02)  # a clock tick of the file system
    changed = b"x" + CONTENT[1:]
    if what == "touched":
        large.touch()
    elif what == "replaced":
        other = large.with_name("other")
        other.write_bytes(changed)
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.replace(large)
    else:
        large.write_bytes(changed)
        if what == "kept time":
            os.utime(large, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert intact(large, sha) == (what == "touched") and len(reads) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"mark": 1}'])
def test_a_damaged_stamp_counts_for_nothing(large: Path, reads: list[Path], content: str) -> None:
    sha = checksum(large)
    stamp_path(large).write_text(content)
    assert [intact(large, sha) for _ in range(2)] == [True, True] and reads == [large]  # it was written anew


def test_a_stamp_that_cannot_be_written_or_is_of_a_small_file_is_none(
    large: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, fields: object) -> None:
        raise UserError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(files.sealed_json, "write", full)
        assert intact(large, checksum(large)) and not stamp_path(large).exists()
    monkeypatch.setattr(files, "LARGE", len(CONTENT) + 1)
    assert intact(large, checksum(large)) and not stamp_path(large).exists()
