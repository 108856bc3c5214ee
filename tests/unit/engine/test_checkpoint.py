"""Checkpoints on disk: read back, kept when they cannot be read now, set aside when they are damaged."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import torch
from world import CPU

from fedbench.engine import checkpoint
from fedbench.errors import ReadError


class KilledError(Exception):
    """Stands for a killed process."""


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.ESTALE, "Stale file handle"),
    ],
)
def test_one_that_cannot_be_read_just_now_is_kept(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise error

    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"round": 1})
    with monkeypatch.context() as patch, pytest.raises(ReadError, match=r"is kept"):
        patch.setattr(torch, "load", fails)
        checkpoint.load(path, "k", CPU, {})
    assert checkpoint.load(path, "k", CPU, {}) == {"round": 1}


@pytest.mark.parametrize("floats", [100, 4_000, 16_000, 60_000])
def test_a_damaged_one_is_set_aside_wherever_it_ends(floats: int, tmp_path: Path) -> None:
    """A torn file can end in a seek before its beginning, which is an OSError and yet the file's own fault."""
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"x": torch.ones(floats)})
    content = path.read_bytes()
    for part in range(1, 20):
        path.write_bytes(content[: len(content) * part // 20])
        assert checkpoint.load(path, "k", CPU, {"x": torch.ones(floats)}) is None and not path.exists()


def test_a_checkpoint_is_data_not_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    path = tmp_path / "checkpoint.pt"
    with path.open("wb") as file:
        checkpoint.pack({"format": checkpoint.FORMAT, "key": "k", "state": Evil()}, file)
    assert checkpoint.load(path, "k", CPU, {}) is None
    assert not (tmp_path / "ran").exists()


def test_an_interrupted_write_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"round": 1})

    def half(content: Any, file: Any) -> None:
        file.write(b"half of it")
        raise KilledError

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KilledError):
        checkpoint.save(path, "k", {"round": 2})
    assert checkpoint.load(path, "k", CPU, {}) == {"round": 1}


@pytest.mark.parametrize(("wanted", "saving", "expected"), [(30, 0.1, 30), (30, 4, 80), (0, 4, 0)])
def test_large_checkpoints_are_written_less_often(wanted: float, saving: float, expected: float) -> None:
    """At most a 20th of the time goes into them; 0 seconds mean each round, whatever it costs."""
    from fedbench.engine.simulate import pause

    assert pause(wanted, saving) == expected
