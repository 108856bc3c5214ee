"""Studies that are shown together, each by a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(work: Callable[[Item], Result], items: Collection[Item]) -> Iterator[Result]:
    """Yield the results in the order of the items, as many at a time as there are cores; a single one is made here."""
    if len(items) == 1:
        yield from map(work, items)
        return
    # an interrupt ends the others without a word: this one reports it
    quiet = (signal.SIGINT, signal.SIG_DFL)
    count = min(len(items), os.cpu_count() or 1)
    with ProcessPoolExecutor(count, initializer=signal.signal, initargs=quiet) as pool:
        yield from pool.map(work, items)
