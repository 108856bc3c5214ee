"""Hostile data of one's own: arrays that lie about themselves and tables that would be read in another sense."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from fedbench.data.prepared import prepare
from fedbench.errors import LINE, UserError, explain

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
ROWS = [f"{n},{n % 7},{'xy'[n % 2]}" for n in range(40)]


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config/datasets").mkdir(parents=True)
    Path("config/datasets/mine.yaml").write_text("file: mine.npz")


def npy(array: object, objects: bool = False) -> bytes:
    """An array as a member of an archive."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=objects)
    return buffer.getvalue()


def claimed(shape: str, descr: str = "<f4", body: bytes = b"") -> bytes:
    """A member that says what it likes."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def archive(members: Iterable[tuple[str, bytes]], packing: int = zipfile.ZIP_STORED) -> None:
    """Write ``mine.npz``; a name may come twice."""
    with warnings.catch_warnings(), zipfile.ZipFile("mine.npz", "w", packing) as file:
        warnings.simplefilter("ignore")
        for name, content in members:
            file.writestr(f"{name}.npy", content)


def refused(message: str) -> None:
    """Expect one short line, and no files of data."""
    with pytest.raises(UserError, match=message) as caught:
        prepare("mine", "data")
    said = explain(caught.value)
    assert "\n" not in said and len(said) < LINE + 50 and said.isprintable()
    assert not list(Path("data").rglob("*.npy"))


class Pickled:
    def __reduce__(self) -> object:
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": npy(np.array([Pickled()]), objects=True)}, "Object arrays cannot be loaded"),
        ({"x": claimed("(1000000000000000,)")}, "does not fit into the memory that is free"),
        ({"x": npy(X)[:-4]}, "truncated or corrupt"),
        ({"x": npy(X[0, 0])}, r"array 'x' has shape \[\]: give each sample features"),
        ({"x": npy(X[:, 0])}, r"array 'x' has shape \[40\]: give each sample features"),
        ({"x": npy(X[:, :0])}, r"array 'x' has shape \[40, 0\]: give each sample features"),
        ({"y": claimed("(40,)", "<U1", struct.pack("<I", 0x7FFFFFFF) * 40)}, "its labels are not text"),
        ({"y": claimed("(40,)", "<U1", struct.pack("<I", 0xD800) * 40)}, "has control characters"),
        ({"y": npy(np.array([b"\xff", b"a"] * 20))}, "its labels are not text"),
        ({"y": npy(np.array(["a\nb", "c"] * 20))}, "has control characters"),
        ({"y": npy(np.array(["a" * 1000, "b"] * 20))}, "or more than 100"),
        ({"y": npy(Y), "x_test": npy(X), "y_test": npy(np.array(["a", "b"] * 20))}, "text in one part and numbers"),
        ({"group": npy(np.full(40, 1e300))}, "groups must be whole numbers or names"),
        ({"group": npy(np.full(40, 2**63 + 5, np.uint64))}, "groups must be whole numbers or names"),
        ({"x\n\x1b" + "x" * 30_000: npy(X)}, "unknown array in mine.npz"),
    ],
)  # fmt: skip
def test_arrays_that_lie_are_refused(changed: dict[str, bytes], message: str) -> None:
    archive({"x": npy(X), "y": npy(Y), **changed}.items())
    refused(message)
    assert not Path("harm").exists()


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("a,a,label", ROWS, "each column needs a name of its own, not 'a'"),
        (",b,label", ROWS, "numbers of rows are not features"),
        ("a,b,label", [f"{n},1,c{n // 3}" for n in range(40_000)], "13334 different ones; 10000 is the most"),
        ("a,b,label", ["1,2,x\x1b[31m", *ROWS], "has control characters"),
        ("q" * 5000 + "\x1b,b,label", ["z,1,x", *ROWS], "is not numeric"),
        ("a,b,label", ["8_0,1,x", *ROWS], "column 'a' has '8_0', which is not numeric"),
        ("a|b|label", [row.replace(",", "|") for row in ROWS], "unknown column in mine.csv 'label'"),
        ("\0" * 1000, [], "unknown column in mine.csv 'label'"),
    ],
)
def test_tables_that_would_be_read_in_another_sense_are_refused(
    header: str, rows: list[str], message: str
) -> None:
    Path("config/datasets/mine.yaml").write_text("{file: mine.csv, label: label}")
    Path("mine.csv").write_text("\n".join([header, *rows]))
    refused(message)


@pytest.mark.parametrize("name", ["a\nb.csv", "q" * 5000 + ".csv", "\x1b[31m.csv"])
def test_the_name_of_a_file_stays_on_its_line(name: str) -> None:
    quoted = ascii(name).replace("'", '"')
    Path("config/datasets/mine.yaml").write_text(f"{{file: {quoted}, label: label}}")
    with pytest.raises((UserError, OSError)) as caught:
        prepare("mine", "data")
    said = explain(caught.value)
    assert "\n" not in said and len(said) < LINE and said.isprintable()
