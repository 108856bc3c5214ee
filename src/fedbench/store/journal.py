"""The store's journal: a line each time a run is begun, continued, finished, imported or forgotten.

So that work can be counted: a run that was finished is never begun again unless it was forgotten.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from pathlib import Path

NAME = "journal.jsonl"


def note(root: Path, event: str, key: str) -> None:
    """Append a line to the journal of the store ``root``: what happened to which run, when and where.

    Nothing depends on it: a disk that takes no line is no error.
    """
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": event, "key": key}
    line |= {"host": platform.node(), "pid": str(os.getpid())}
    with contextlib.suppress(OSError), (root / NAME).open("a") as file:
        file.write(json.dumps(line) + "\n")  # one write: lines of several processes do not mix


def read_journal(root: Path) -> list[dict[str, str]]:
    """Read the journal, oldest line first; lines that a power cut tore are skipped."""
    lines = []
    with contextlib.suppress(OSError):
        for line in (root / NAME).read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
    return lines
