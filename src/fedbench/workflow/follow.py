"""Tells, while the workflow runs, how training stands: a line that stays at a terminal's foot, few lines in a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from fedbench.jobs.progress import LOG_SECONDS, TERMINAL_SECONDS

GROWTH = 1.25
"""How much longer than at the line before the work has to have taken: a night gives some thirty lines, not hundreds."""
CLEAR = "\r\033[K"


def tell(lines: list[str]) -> None:
    """Print lines at once, in a terminal and in a log alike."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


class Foot:
    """Keeps one line below everything that is written to a terminal's stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._write = stream, stream.write
        self._line, self._at_start, self._stands = "", True, False
        stream.write = self.write  # type: ignore[method-assign]

    def write(self, text: str) -> int:
        """Write what somebody else has to say, above the line; parts of a line stay together."""
        done = self._write(f"{CLEAR}{text}" if self._stands else text)
        self._at_start = text.endswith("\n") if text else self._at_start
        self._stands = self._at_start and bool(self._line)
        if self._stands:
            self._write(self._line)
        return done

    def show(self, line: str) -> None:
        """Put another line in its place; an empty one removes it."""
        self._line = line[: shutil.get_terminal_size().columns - 1]
        if self._at_start:
            self._write(CLEAR + self._line)
            self._stands = bool(self._line)
            self._stream.flush()


def follow(state: Callable[[], list[str]], seconds: float | None = None) -> Callable[[], None]:
    """Tell what ``state`` returns whenever that has changed, and return what ends it.

    On a terminal it is one line that stays visible, looked at every second; in a log a line every ``seconds`` at first,
    then less and less often.
    """
    foot = Foot(sys.stderr) if sys.stderr.isatty() else None
    pause = seconds or (TERMINAL_SECONDS if foot else LOG_SECONDS)
    over, began = threading.Event(), time.monotonic()

    def loop() -> None:
        before, told_at = list[str](), 0.0
        while not over.wait(pause):
            passed = time.monotonic() - began
            if foot is None and passed < told_at * GROWTH:
                continue
            try:
                now = state()
            except RuntimeError:  # the scheduler changed its lists meanwhile
                continue
            if now == before:
                continue
            if foot is None:
                tell(now)
            else:
                foot.show("; ".join(now))
            before, told_at = now, passed

    threading.Thread(target=loop, daemon=True).start()

    def end() -> None:
        over.set()
        if foot is not None:
            foot.show("")

    return end
