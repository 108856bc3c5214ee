"""Training runs here, one after another, or several at a time in processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier

from fedbench.errors import AGAIN, UserError
from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train.training import held_back, train_run

_everybody: Barrier
"""In a process of the executor: where all of them meet."""


class Workers:
    """Trains up to ``cores`` runs at a time: by an executor's processes, or without one in this process."""

    def __init__(self, cores: int, executor: Executor | None = None) -> None:
        self._cores, self._executor = cores, executor
        self._begun = dict[Future[Record], RunSpec]()
        self._processes = set[BaseProcess]()

    @property
    def free(self) -> int:
        """How many further runs can begin."""
        return self._cores - len(self._begun)

    def killed(self) -> KilledError:
        """Wait for the end of all processes; return the error that says which runs a killed or crashed one trained."""
        if self._executor is not None:
            self._executor.shutdown()
        told = (0, -signal.SIGTERM)  # the executor tells the others to end
        pids = {str(process.pid) for process in self._processes if process.exitcode not in told}
        return KilledError(
            [run for run in self._begun.values() if Store().holder(run.key).split(" ")[0] in pids]
        )

    @property
    def begun(self) -> set[str]:
        """The keys of the runs that have begun and are not known to be done."""
        return {run.key for run in self._begun.values()}

    def begin(self, spec: RunSpec, config: Config) -> None:
        """Give a run to a process, or train it."""
        if self._executor is not None:
            future = self._executor.submit(_train, spec, config)
            self._processes |= {*multiprocessing.active_children()}
        else:
            future = Future()
            future.set_result(train_run(spec, config, Store()))
        self._begun[future] = spec

    def finished(self) -> list[tuple[RunSpec, Future[Record]]]:
        """Wait for runs, and return those that are done, which have a record or an error.

        Raises:
            BrokenProcessPool: a process was killed.
        """
        done, _ = wait(self._begun, return_when=FIRST_COMPLETED)
        for future in done:
            if isinstance(broken := future.exception(), BrokenProcessPool):
                raise broken
        return [(self._begun.pop(future), future) for future in done]


@contextlib.contextmanager
def workers(cores: int) -> Iterator[Workers]:
    """Yield what trains ``cores`` runs at a time.

    If the block ends early, by an error, Ctrl-C or SIGTERM, the processes save what they have trained and end.

    Raises:
        KilledError: one of the processes was killed.
    """
    if cores == 1:
        yield Workers(1)
        return
    # forks of a process that has imported PyTorch, once for all, and done nothing else: of one that has used it they
    # can hang
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    executor = ProcessPoolExecutor(cores, context, _be_led, (context.Barrier(cores),))
    pool = Workers(cores, executor)
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with held_back():  # a process whose start is broken off misses the barrier, and says so at length
            # a terminal's Ctrl-C comes to all: only this process heeds it, as what it starts inherits the block
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            meetings = [executor.submit(_meet) for _ in range(cores)]
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        # the executor notices the death of a process only from the first result after its start on
        for meeting in meetings:
            meeting.result()
        yield pool
    except BrokenProcessPool:
        raise pool.killed() from None
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        signal.signal(signal.SIGTERM, before)


class KilledError(UserError):
    """A process was killed; ``lost`` are the runs that it trained."""

    def __init__(self, lost: list[RunSpec]) -> None:
        self.lost = lost
        named = [f"{run.method} {run.params} on {run.data.dataset}, seed {run.seed}" for run in lost]
        super().__init__(
            f"a training was killed, perhaps for lack of memory ({'; '.join(named) or 'before it began'}):"
            f" use fewer --cores, {AGAIN}"
        )


def _be_led(barrier: Barrier) -> None:
    """End as soon as the process that began this one is gone."""
    global _everybody
    _everybody = barrier
    leader = multiprocessing.parent_process()
    assert leader is not None

    def follow() -> None:
        leader.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


def _meet() -> None:
    """Wait until every process of the executor has started."""
    _everybody.wait()


def _train(spec: RunSpec, config: Config) -> Record:
    try:
        return train_run(spec, config, Store())
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:  # of any class: one that takes two words would not arrive, and break the pool
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
