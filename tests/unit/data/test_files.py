from __future__ import annotations

import errno
import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedbench import sealed_json
from fedbench.data.files import checksum, read_json, read_npz, write_npy, write_npz
from fedbench.errors import ReadError, UserError
from fedbench.files import atomic

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


def test_npz_of_a_strided_view_is_stored_by_value(tmp_path):
    view = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    write_npz(tmp_path / "view.npz", {"x": view})
    np.testing.assert_array_equal(read_npz(tmp_path / "view.npz", "")["x"], view)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_truncated_npz_names_the_file_and_the_cure(tmp_path, share):
    path = tmp_path / "cut.npz"
    write_npz(path, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=r"cut\.npz is truncated or corrupt.*Do this\."):
        read_npz(path, "Do this.")


def test_one_flipped_bit_in_an_npz_is_found(tmp_path):
    path = tmp_path / "flipped.npz"
    write_npz(path, ARRAYS)
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"flipped\.npz is truncated or corrupt"):
        read_npz(path, "")


def test_a_single_array_called_npz_is_named(tmp_path):
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(UserError, match=r"one\.npz is truncated or corrupt .*Do this\."):
        read_npz(tmp_path / "one.npz", "Do this.")


@pytest.mark.parametrize("text", ["", '{"a": 1', "[1, 2]", "\x00"])
def test_broken_json_names_the_file_and_the_cure(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=r"x\.json .*Do this\."):
        read_json(tmp_path / "x.json", "Do this.")


def test_missing_files_are_user_errors(tmp_path):
    for read in (read_npz, read_json):
        with pytest.raises(UserError, match=r"gone is missing\. Do this\."):
            read(tmp_path / "gone", "Do this.")


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "x.json"
    sealed_json.write(path, {"old": 1})
    with pytest.raises(ValueError, match="half way"), atomic(path) as temporary:
        temporary.write_text("{half")
        raise ValueError("half way")
    assert read_json(path, "") == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_of_the_old_file_never_sees_a_mixture(tmp_path):
    path = tmp_path / "x.json"
    sealed_json.write(path, {"old": 1})
    with path.open() as reader:
        sealed_json.write(path, {"new": 2})
        assert json.load(reader)["old"] == 1
    assert read_json(path, "") == {"new": 2}


def test_atomic_makes_the_folder(tmp_path: Path):
    sealed_json.write(tmp_path / "a" / "b" / "c.json", {"a": 1})
    assert (tmp_path / "a" / "b" / "c.json").read_text().startswith('{\n "a": 1,')


def test_what_cannot_be_read_now_is_not_called_corrupt(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.zeros(10)})

    def fails(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(np, "load", fails)
    with pytest.raises(ReadError, match="It is kept"):
        read_npz(path, "Do this.")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3 * 2**17, dtype=np.uint8).reshape(3, -1),  # more than is written at a time
        np.arange(6.0)[::2],
        np.array(["", "zwölf"]),
        np.zeros((0, 3)),
        np.array([[True], [False]]),
        np.float32(2),
    ],
    ids=["blocks", "strided", "text", "empty", "truth", "number"],
)
def test_an_array_is_written_as_numpy_writes_it(tmp_path: Path, array: np.ndarray) -> None:
    write_npz(tmp_path / "a.npz", {"x": array})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        content = archive.read("x.npy")
    expected = io.BytesIO()
    np.lib.format.write_array(expected, np.ascontiguousarray(array), allow_pickle=False)
    assert content == expected.getvalue()
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz", "")["x"], np.ascontiguousarray(array))


PIXELS = np.random.default_rng(0).integers(0, 256, (40, 1, 9, 11), np.uint8)


@pytest.fixture
def decoded(tmp_path: Path) -> np.memmap:
    """Pixels that are mapped from a file of the folder ``decoded``."""
    (tmp_path / "decoded").mkdir()
    np.save(tmp_path / "decoded/a.npy", PIXELS)
    return np.load(tmp_path / "decoded/a.npy", mmap_mode="r+")  # type: ignore[no-any-return]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_holds_an_array_becomes_its_file_without_a_copy_where_the_disk_can(
    tmp_path: Path, decoded: np.memmap, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: Path("no such file").stat())
    monkeypatch.chdir(tmp_path)
    sha = write_npy(tmp_path / "x.npy", decoded, Path("decoded"))
    assert (tmp_path / "x.npy").samefile("decoded/a.npy") == links and sha == checksum(tmp_path / "x.npy")
    np.testing.assert_array_equal(np.load("x.npy"), PIXELS)


@pytest.mark.parametrize(
    "part", [lambda x: x[:7], lambda x: x[::-1], lambda x: x[:, :, ::2], lambda x: x + 0]
)
def test_an_array_that_is_not_all_of_a_file_is_copied(
    tmp_path: Path, decoded: np.memmap, part: Callable[[np.ndarray], np.ndarray]
) -> None:
    write_npy(tmp_path / "x.npy", part(decoded), tmp_path / "decoded")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), part(PIXELS))
    write_npy(tmp_path / "y.npy", decoded, tmp_path / "another")
    assert not (tmp_path / "y.npy").samefile(tmp_path / "decoded/a.npy")
