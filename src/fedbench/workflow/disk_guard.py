"""Keeps a workflow off a disk that takes no files: no job is begun on one, none after another has failed by it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from fedbench import files
from fedbench.errors import AGAIN, WriteError


def check_disks(paths: Iterable[str]) -> None:
    """Refuse to begin while one of the folders that take these files takes none.

    Raises:
        WriteError: the disk is full, read-only or closed to this user.
    """
    for folder in sorted({_standing(Path(path)) for path in paths}):
        files.check_room(folder)


def _standing(path: Path) -> Path:
    """Return the nearest folder above a file that is there."""
    return next(folder for folder in path.parents if folder.is_dir())


def failed_by_disk(log: Path) -> bool:
    """Say whether a job failed because of the disk: its last words say so, or there is no room for any."""
    with contextlib.suppress(OSError):
        if lines := log.read_text(errors="replace").splitlines():
            return lines[-1].startswith("error: cannot ") and lines[-1].endswith(AGAIN)
    try:
        check_disks([str(log)])
    except WriteError:
        return True
    return False


def watch(
    failed: Callable[[], Iterable[str]], stop: Callable[[], object], seconds: float = 0.1
) -> threading.Event:
    """Call ``stop`` once one of the logs of ``failed`` jobs speaks of the disk; until the returned event is set."""
    over, seen = threading.Event(), set[str]()

    def loop() -> None:
        while not over.wait(seconds):
            with contextlib.suppress(RuntimeError):  # the scheduler changed its sets meanwhile
                new = {*failed()} - seen
                seen.update(new)
                if any(failed_by_disk(Path(log)) for log in new):
                    stop()
                    return

    threading.Thread(target=loop, daemon=True).start()
    return over
