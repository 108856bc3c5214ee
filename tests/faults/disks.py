"""A small disk to fill."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest


class Disk:
    """A small disk of its own."""

    def __init__(self, path: Path, size: str) -> None:
        self.path, self._size = path, size
        path.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    def _mount(self, *options: str) -> None:
        done = subprocess.run(["mount", *options, self.path], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")

    def fill(self, leave: int = 0) -> None:
        """Fill it up to ``leave`` bytes."""
        with (self.path / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        if leave:
            os.truncate(self.path / "filler", (self.path / "filler").stat().st_size - leave)

    def free(self) -> None:
        """Remove the filling."""
        (self.path / "filler").unlink()

    def writable(self, yes: bool) -> None:
        """Mount it read-only, or writable again."""
        self._mount("-o", f"remount,size={self._size},{'rw' if yes else 'ro'}")

    def resize(self, size: str) -> None:
        """Make it larger."""
        self._size = size
        self.writable(True)

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "--lazy", self.path], check=False)
