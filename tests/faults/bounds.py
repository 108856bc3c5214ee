"""What one case of the fuzz suite may take: 20 s of processor time and 1 GB of memory."""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

SECONDS, BYTES, WAITING = 20, 1 << 30, 600
PAGE = resource.getpagesize()


class TooMuch(BaseException):
    """A case took more than it may; no program under test catches this."""


@contextlib.contextmanager
def bounded(seconds: float = SECONDS, size: int = BYTES) -> Iterator[None]:
    """End a case that takes more processor time, or waits for ever, and give it no more memory than it may have."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooMuch(f"more than {seconds} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    old = {part: signal.signal(part, stop) for part in (signal.SIGPROF, signal.SIGALRM)}
    if sys.platform == "linux":
        now = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        resource.setrlimit(resource.RLIMIT_AS, (now + size, before[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        for part, handler in old.items():
            signal.signal(part, handler)
