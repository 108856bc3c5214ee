"""Training runs here, one after another, or several at a time in processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess

from fedbench.errors import AGAIN, UserError, lacks_memory
from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train.training import train_run


class Here:
    """Trains in this process, a run at a time."""

    def __init__(self, config: Config) -> None:
        self._config, self._begun = config, list[RunSpec]()

    @property
    def free(self) -> int:
        """One, as long as nothing was begun."""
        return 1 - len(self._begun)

    def begin(self, spec: RunSpec) -> None:
        """Keep a run in mind."""
        self._begun.append(spec)

    def finished(self) -> list[tuple[RunSpec, Record]]:
        """Train it."""
        spec = self._begun.pop()
        return [(spec, train_run(spec, self._config, Store()))]


class Processes:
    """Trains in up to ``cores`` processes, each with a run at a time."""

    def __init__(self, config: Config, cores: int) -> None:
        self._config, self._cores = config, cores
        self._processes = list[ForkServerProcess]()
        self._idle, self._busy = list[Connection](), dict[Connection, RunSpec]()

    @property
    def free(self) -> int:
        """How many processes have nothing to do, or may still be started."""
        return self._cores - len(self._busy)

    def begin(self, spec: RunSpec) -> None:
        """Give a run to a process."""
        connection = self._idle.pop() if self._idle else self._started()
        connection.send(spec)
        self._busy[connection] = spec

    def finished(self) -> list[tuple[RunSpec, Record]]:
        """Wait for processes.

        Raises:
            UserError: what is wrong with a run, or its process was killed.
        """
        return [
            self._done(connection) for connection in wait(self._busy) if isinstance(connection, Connection)
        ]

    def close(self) -> None:
        """Let the processes end, which have nothing to do any more."""
        for connection in self._idle:
            connection.close()
        for process in self._processes:
            process.join()

    def stop(self) -> None:
        """Tell the processes to stop, and wait until they have saved what they have trained."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def _started(self) -> Connection:
        # of a process that has imported PyTorch, once for all, and done nothing else: a fork of one that has used it
        # can hang
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        _serve_forks()
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._config), daemon=True)
        process.start()
        theirs.close()
        self._processes.append(process)
        return ours

    def _done(self, connection: Connection) -> tuple[RunSpec, Record]:
        try:
            result = connection.recv()
        except (EOFError, ConnectionError):
            raise UserError(
                f"a training was killed, perhaps for lack of memory: use fewer --cores, {AGAIN}"
            ) from None
        if isinstance(result, Exception):
            raise result
        self._idle.append(connection)
        return self._busy.pop(connection), result


Workers = Here | Processes


@contextlib.contextmanager
def workers(config: Config, cores: int) -> Iterator[Workers]:
    """Yield what trains ``cores`` runs at a time: one in this process, several in processes of their own.

    If the block ends early, by an error, Ctrl-C or SIGTERM, they save what they have trained and end.
    """
    if cores == 1:
        yield Here(config)
        return
    processes = Processes(config, cores)
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield processes
    except BaseException:
        processes.stop()
        raise
    else:
        processes.close()
    finally:
        signal.signal(signal.SIGTERM, before)


def _serve_forks() -> None:
    """Start the process that forks the others, with Ctrl-C blocked: its imports take seconds."""
    resource_tracker.ensure_running()  # else started below, which unblocks the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _serve(connection: Connection, config: Config) -> None:
    """Train what comes, until nothing will."""
    # a terminal's Ctrl-C comes to all of them: it is for the one that knows the others
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            spec = connection.recv()
            try:
                result: Record | Exception = train_run(spec, config, Store())
            except (UserError, OSError, MemoryError) as error:
                result = error
            except Exception as error:
                if not lacks_memory(error):
                    traceback.print_exc()  # what is sent has none
                result = RuntimeError(str(error))
            connection.send(result)
