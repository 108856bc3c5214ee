"""Tells, while the workflow runs, how the training stands."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from fedbench.jobs.progress import LOG_SECONDS


def tell(lines: list[str]) -> None:
    """Print lines at once, in a terminal and in a log alike."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def follow(state: Callable[[], list[str]], seconds: float = LOG_SECONDS) -> threading.Event:
    """Tell every ``seconds`` what ``state`` returns, whenever that has changed, until the event is set."""
    over = threading.Event()

    def loop() -> None:
        before: list[str] = []
        while not over.wait(seconds):
            try:
                now = state()
            except RuntimeError:  # the scheduler changed its lists meanwhile
                continue
            if now != before:
                tell(now)
                before = now

    threading.Thread(target=loop, daemon=True).start()
    return over
