"""Tells, while the workflow runs, how training stands, in few lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from fedbench.train.progress import LOG_SECONDS

GROWTH = 1.25
"""How much longer than at the line before the work has to have taken: a night gives some thirty lines, not hundreds."""


def tell(lines: list[str]) -> None:
    """Print lines at once, in a terminal and in a log alike."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def follow(state: Callable[[], list[str]], seconds: float = LOG_SECONDS) -> Callable[[], None]:
    """Tell what ``state`` returns when that has changed, every ``seconds`` at first, then less and less often.

    Returns:
        What ends it.
    """
    over, began = threading.Event(), time.monotonic()

    def loop() -> None:
        before, told_at = list[str](), 0.0
        while not over.wait(seconds):
            passed = time.monotonic() - began
            if passed < told_at * GROWTH:
                continue
            try:
                now = state()
            except RuntimeError:  # the scheduler changed its lists meanwhile
                continue
            if now != before:
                tell(now)
                before, told_at = now, passed

    threading.Thread(target=loop, daemon=True).start()
    return over.set
