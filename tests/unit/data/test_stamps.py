"""A large file is read once for its checksum, by all processes together, and again when it has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fedbench import sealed_json
from fedbench.data import stamps
from fedbench.data.files import checksum
from fedbench.data.stamps import intact, stamp_path

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read; nothing is remembered in this process, as if each question came from another."""
    collected: list[Path] = []
    monkeypatch.setattr(stamps, "checksum", lambda path: collected.append(path) or checksum(path))
    monkeypatch.setattr(stamps, "_sha256", stamps._sha256.__wrapped__)
    monkeypatch.setattr(stamps, "LARGE", 1000)
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
    assert intact(large, sha) and reads == [large]
    assert intact(large, sha) and reads == [large]  # it was written anew


def test_a_folder_that_takes_no_stamp_is_no_obstacle(
    large: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, fields: object) -> None:
        raise stamps.UserError("no space")

    monkeypatch.setattr(stamps.sealed_json, "write", full)
    assert intact(large, checksum(large)) and not stamp_path(large).exists()


def test_small_files_have_no_stamp(large: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "LARGE", len(CONTENT) + 1)
    assert intact(large, checksum(large)) and not stamp_path(large).exists()


def test_a_note_without_a_state_vouches_for_no_missing_file(tmp_path: Path) -> None:
    sealed_json.write(stamp_path(tmp_path / "x"), {"sha256": "0" * 64})
    with pytest.raises(FileNotFoundError):
        stamps.sha256(tmp_path / "x")
