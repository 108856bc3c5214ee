from __future__ import annotations

import errno
import io
import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedbench import seal
from fedbench.data import files
from fedbench.data.files import checksum, content_start, new_npz, read_json, read_npz, write_npz
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
    seal.write(path, {"old": 1})
    with pytest.raises(ValueError, match="half way"), atomic(path) as temporary:
        temporary.write_text("{half")
        raise ValueError("half way")
    assert read_json(path, "") == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_of_the_old_file_never_sees_a_mixture(tmp_path):
    path = tmp_path / "x.json"
    seal.write(path, {"old": 1})
    with path.open() as reader:
        seal.write(path, {"new": 2})
        assert json.load(reader)["old"] == 1
    assert read_json(path, "") == {"new": 2}


def test_atomic_makes_the_folder(tmp_path: Path):
    seal.write(tmp_path / "a" / "b" / "c.json", {"a": 1})
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


PIXELS = np.random.default_rng(0).integers(0, 256, (40, 1, 99, 101), np.uint8)
"""More than is written at a time."""


def in_a_file(folder: Path, name: str = "x_train", tail: bytes = b"") -> np.memmap:
    """Pixels that are mapped from a file, where an archive has them."""
    start = content_start(name, PIXELS.dtype, PIXELS.shape)
    folder.mkdir(exist_ok=True)
    (folder / "pixels").write_bytes(bytes(start) + PIXELS.tobytes() + tail)
    return np.memmap(folder / "pixels", np.uint8, "r+", start, PIXELS.shape)


def around(x: np.ndarray) -> dict[str, np.ndarray]:
    return {"x_train": x, "y_train": np.arange(len(x)), "x_test": PIXELS[::2]}


@pytest.mark.parametrize("tail", [b"", bytes(10**6)], ids=["first", "after a longer one"])
def test_a_file_that_holds_the_first_array_becomes_the_archive(tmp_path, monkeypatch, tail):
    write_npz(tmp_path / "copied.npz", around(PIXELS))
    x = in_a_file(tmp_path / "own", tail=tail)
    before = (tmp_path / "own" / "pixels").stat().st_ino
    monkeypatch.chdir(tmp_path)
    moved = tmp_path / "moved.npz"
    with new_npz(moved, around(x), Path("own")) as sha:
        assert not moved.exists()
    assert moved.read_bytes() == (tmp_path / "copied.npz").read_bytes() and sha == checksum(moved)
    assert moved.stat().st_ino == before and not [*Path("own").iterdir()]


@pytest.mark.parametrize(
    ("arrays", "own_data"),
    [
        (lambda x: around(x[:7]), "own"),  # the rest is needed
        (lambda x: {"x": x}, "own"),  # would lie elsewhere
        (around, "another"),  # a user's own file, perhaps
    ],
    ids=["part", "elsewhere", "another's"],
)
def test_a_file_that_is_not_the_archive_to_be_is_left_alone(tmp_path, arrays, own_data):
    x = in_a_file(tmp_path / "own")
    held = (tmp_path / "own" / "pixels").read_bytes()
    with new_npz(tmp_path / "x.npz", arrays(x), tmp_path / own_data):
        pass
    assert (tmp_path / "own" / "pixels").read_bytes() == held
    back = read_npz(tmp_path / "x.npz", "")
    for name, array in arrays(x).items():
        np.testing.assert_array_equal(back[name], array)


def test_a_full_disk_costs_no_pixel_that_a_file_holds(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    write_npz(path, around(PIXELS))
    expected = path.read_bytes()
    path.write_bytes(b"old")
    x, real = in_a_file(tmp_path / "own"), files._Partial.write

    def full(file: files._Partial, content: bytes) -> int:
        if file.tell() > file.filled.stop + 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(files._Partial, "write", full)
        with pytest.raises(UserError, match="No space left"), new_npz(path, around(x), tmp_path / "own"):
            pass
    assert path.read_bytes() == b"old"
    np.testing.assert_array_equal(x, PIXELS)
    with new_npz(path, around(x), tmp_path / "own"):
        pass
    assert path.read_bytes() == expected
