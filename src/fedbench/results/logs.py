"""What the log of a training job says of a cell that left no result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fedbench.study.cells import Cell

FAILED, UNFINISHED = "failed", "interrupted"
LOGS = Path("logs", "train")
LINES, WIDTH = 14, 240
"""How much of a log is shown."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENDED = re.compile(r"^\s+seed \d+: (finished|diverged)")
BROKEN = re.compile(r"error:|Traceback |[\w.]*(Error|Exception|Interrupt)\b|.*\b(Killed|Segmentation fault)")


@dataclass(frozen=True)
class Log:
    """The end of a job's log: its path, its last lines, and what they say of a cell without results."""

    path: Path
    lines: list[str]
    says: str


def log_of(cell: Cell) -> Log | None:
    """Return the end of the log that the workflow's job of a cell left, None where there is none.

    ``says`` is empty where there is a result, which the job would have removed before it began, or where the log
    tells of an end of all seeds; ``failed`` when an error stands in it; ``interrupted`` otherwise: a job that was
    killed says nothing.
    """
    path = LOGS / Path(*cell.path.parts[2:]).with_suffix(".log")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = [ESCAPES.sub("", line).rstrip() for line in text.rstrip().split("\n")]
    says = UNFINISHED
    if cell.path.exists():
        says = ""
    elif any(BROKEN.match(line) for line in lines):
        says = FAILED
    elif sum(bool(ENDED.match(line)) for line in lines) >= len(cell.runs):
        says = ""
    return Log(path, [line[:WIDTH] for line in lines[-LINES:]], says)
