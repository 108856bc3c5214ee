"""Several runs at a time, in processes of their own: a cell's, and while cores are free those of the cells after it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack

from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.train.progress import say
from fedbench.train.workers import Workers, workers


class Ahead:
    """Trains what cells lack, in their order; the processes end with the ``stack``.

    What fails or is killed before the turn of its cell is tried again then.
    """

    def __init__(
        self, plan: Plan, lacking: dict[str, tuple[RunSpec, Cell]], store: Store, cores: int, stack: ExitStack
    ) -> None:
        self._plan, self._waiting, self._store, self._cores, self._stack = plan, lacking, store, cores, stack
        self._pool: Workers | None = None

    def train(self, cell: Cell, on_end: Callable[[Record], None]) -> None:
        """Train the runs that the store lacks of a cell.

        Raises:
            Exception: what the first of them that failed raised, once all have ended.
            KilledError: the process of one of them was killed.
        """
        left = {run.key: (run, cell) for run in cell.runs if self._store.load(run.key) is None}
        if not left:
            return
        if self._pool is None:
            self._pool = self._stack.enter_context(workers(self._cores))
        pool = self._pool
        first = {key: run for key, run in left.items() if key not in pool.begun}
        self._waiting = first | self._waiting
        say(f"  seeds left: {len(left)}, up to {self._cores} runs at a time")
        try:
            self._train({*left}, pool, on_end)
        except BrokenProcessPool:
            killed = pool.killed()
            self._stack.close()
            self._pool = None
            lost = {run.key for run in killed.lost}
            if not lost or lost & left.keys():
                raise killed from None
            say(f"  {killed}; a later cell has that run, this one goes on")
            self.train(cell, on_end)

    def _train(self, left: set[str], pool: Workers, on_end: Callable[[Record], None]) -> None:
        failed = list[BaseException]()
        while left:
            while self._waiting and pool.free:
                run, cell = self._waiting.pop(next(iter(self._waiting)))
                pool.begin(run, self._plan.keeping(cell))
            for run, ended in pool.finished():
                if run.key not in left:
                    continue
                left.remove(run.key)
                if error := ended.exception():
                    failed.append(error)
                else:
                    on_end(ended.result())
        if failed:
            raise failed[0]
