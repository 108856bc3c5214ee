"""Where long work stands: rounds and time left inside a run, cells done, running, failed and left."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedbench.store.runs import TRAIL, Store
from fedbench.study.cells import Cell

TRAIL_SECONDS, LOG_SECONDS, TERMINAL_SECONDS = 5.0, 30.0, 1.0


def say(text: str, end: str = "\n") -> None:
    """Print a line at once. A log on a full disk, or a terminal that is gone, does not stop the work."""
    with contextlib.suppress(OSError):
        print(text, end=end, flush=True)


def seconds_left(progress: Any) -> float:
    """Estimate what the rounds that are left take, from those made in this process; nan where none tells.

    The first round says nothing: libraries warm up and steps are compiled in it.
    """
    made, left = progress.round - progress.begun_at - 1, progress.rounds - progress.round
    return float((progress.seconds - progress.first) / made * left) if made else math.nan


def duration(seconds: float) -> str:
    """Write a duration in the unit one would say it in: ``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // (24 * 60)} d {minutes // 60 % 24} h"


def about(seconds: float) -> str:
    """Say how much time is left as a part of a sentence; nan gives no words."""
    return "" if math.isnan(seconds) else f", about {duration(seconds)} left"


class Trail:
    """Leaves where a run is in its folder, so that others can tell; calls ``then`` after each round."""

    def __init__(self, folder: Path, then: Callable[[Any], None]) -> None:
        self._path, self._then, self._next = folder / TRAIL, then, 0.0

    def __call__(self, progress: Any) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + TRAIL_SECONDS
            where = {"round": progress.round, "rounds": progress.rounds, "left": seconds_left(progress)}
            temporary = self._path.with_suffix(".tmp")
            with contextlib.suppress(OSError):  # it only informs
                temporary.write_text(json.dumps(where))
                temporary.replace(self._path)
        self._then(progress)


class Reporter:
    """Prints where a run is: about once a second on a terminal, about every half minute in a log."""

    def __init__(self) -> None:
        # None where it was closed (`>&-`)
        self._next, self._terminal = 0.0, sys.stdout is not None and sys.stdout.isatty()

    def __call__(self, seed: int, progress: Any) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (TERMINAL_SECONDS if self._terminal else LOG_SECONDS)
        at = f"round {progress.round}/{progress.rounds}{about(seconds_left(progress))}"
        latest = progress.latest.items()
        scores = [f"{k} {v:.4f}" for k, v in latest if k.startswith(("test_auc", "test_min"))]
        line = f"  seed {seed}: {', '.join([at, *scores])}"
        say(f"\r{line}\033[K" if self._terminal else line, end="" if self._terminal else "\n")

    def clear(self) -> None:
        """Remove the line that stands on a terminal, before something else is printed there."""
        if self._terminal:
            say("\r\033[K", end="")


def counts(total: int, done: int, running: int, failed: int) -> str:
    """Say how many cells are in which state: ``cells: 12 of 60 done, 2 running, 1 failed, 45 left``."""
    states = {"running": running, "failed": failed, "left": total - done - running - failed}
    return ", ".join(
        [f"cells: {done} of {total} done"] + [f"{n} {state}" for state, n in states.items() if n]
    )


def _trail(key: str, store: Store) -> dict[str, float]:
    """Return what an unfinished run has left of where it is: its round, the rounds, the seconds left; else nothing."""
    with contextlib.suppress(OSError, ValueError):
        at: dict[str, float] = json.loads((store.checkpoint(key).parent / TRAIL).read_text())
        return at
    return {}


def share_done(cell: Cell, store: Store) -> float:
    """Return the share of a cell's training that is done, by its seeds and by the rounds of the one at work."""
    shares = 0.0
    for run in cell.runs:
        if store.has(run.key):
            shares += 1
        elif at := _trail(run.key, store):
            shares += at["round"] / at["rounds"]
    return shares / len(cell.runs)


def time_left(done_before: float, done: float, left: float, seconds: float) -> str:
    """Say how long the cells that are left take at the pace of those done since; empty where nothing is done."""
    made = done - done_before
    return about(seconds / made * left) if made > 0 and left > 0 else ""


def whereabouts(cell: Cell, store: Store) -> str:
    """Say where the training of a cell is, e.g. ``seed 1 (2 of 3), round 120/480, about 35 s left``; else ''."""
    for number, run in enumerate(cell.runs, 1):
        if store.in_training(run.key):
            place = f"seed {run.seed} ({number} of {len(cell.runs)})"
            if at := _trail(run.key, store):
                return f"{place}, round {at['round']}/{at['rounds']}{about(at['left'])}"
            return f"{place}, starting"
    return ""
