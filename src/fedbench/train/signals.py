"""Being told to stop: ``scancel``, a time limit, Ctrl-C. What was trained until then is saved first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Hold back the signals that end a program until the block is done; yield a function that says if one came.

    The signal then acts as it would have: the program ends by it, which its parent process sees. A second Ctrl-C is
    not held back; a second SIGTERM is, as a scheduler and a parent process may both send one. Signals that are ignored
    stay ignored; outside the main thread, where none arrive, nothing changes.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if number == signal.SIGINT:
            restore()

    def restore() -> None:
        for signum, handler in before.items():
            signal.signal(signum, handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    handlers = {signum: signal.getsignal(signum) or signal.SIG_DFL for signum in SIGNALS}
    before = {signum: handler for signum, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for signum in before:
            signal.signal(signum, note)
        yield lambda: bool(came)
    finally:
        restore()
        if came:
            signal.raise_signal(came[0])
