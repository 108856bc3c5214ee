"""Snakemake, ``fedbench`` and a workflow's jobs as forks of a process that has imported the libraries they import.

A new interpreter takes two seconds to import Snakemake, four to import PyTorch and half a second to import fedbench,
in each of hundreds of calls and jobs. Small stand-ins of the programs ask this server for a fork that does their work
with their files, folder and environment. Where PYTHONPATH leads to another copy of fedbench, the fork is one of a
second server, which has imported none.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

IMPORTED = (
    "matplotlib.pyplot", "pandas", "pydantic", "scipy.stats", "sklearn.datasets", "snakemake.cli",
    "smart_open", "snakemake.report.html_reporter", "snakemake_executor_plugin_slurm", "torch", "typer", "yaml",
)  # fmt: skip
STAND_IN = """#!{python} -IS
import json, os, socket, sys

command = ["{name}", *sys.argv[1:]]
if command[0] == "python":
    command = command[2:] if command[1:3] == ["-m", "fedbench"] else command[1:]
    first, then = [*command, "", ""][:2]
    text = first == "-c" and not then.startswith("from multiprocessing")  # which is given files
    if not (text or first == "fedbench" or first.endswith(".py") or [first, then] == ["-m", "pytest"]):
        os.execv("{python}", ["{python}", *command])
request = {{"command": command, "folder": os.getcwd(), "environment": dict(os.environ)}}
paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
copies = [os.path.realpath(path) for path in paths if os.path.isdir(path + "/fedbench")]
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{folder}/socket" if copies[:1] in ([], ["{library}"]) else "{folder}/bare")
    socket.send_fds(server, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    status = int(server.recv(16) or -9)
sys.exit(status if status >= 0 else 128 - status)
"""


@functools.cache
def stand_ins() -> Path:
    """Return the folder of the stand-ins of this test session, whose server the first that asks starts.

    These are ``snakemake``, ``fedbench``, and ``python`` for scripts, ``-c`` and pytest. They end as what they stand
    for; what a signal ended, as a shell says it. A signal to them reaches no fork. The server ends with the session.
    """
    # what all workers of pytest-xdist have in common
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    folder = Path(tempfile.gettempdir(), f"forks-{session[:16]}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "socket").exists():
            start(folder, sys.executable, str(owner))
    return folder


def group(session: int | None = None) -> tuple[Path, int]:
    """Start a server that, with its forks and what these start, is a process group of its own, to be killed.

    What is left of it ends with the process ``session``, this one if none is given.

    Returns:
        The folder of its stand-ins, and the number of the group.
    """
    folder = Path(tempfile.mkdtemp(dir=stand_ins()))
    start(folder, stand_ins() / "python", str(session or os.getpid()), "apart")
    return folder, int((folder / "group").read_text())


def start(folder: Path, python: str | Path, *arguments: str) -> None:
    """Write stand-ins into a folder and start their server, with an interpreter or a fork of one."""
    library = Path(importlib.import_module("fedbench").__path__[0]).resolve().parent
    for name in ("fedbench", "python", "snakemake"):
        script = STAND_IN.format(python=sys.executable, name=name, folder=folder, library=library)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    server = subprocess.Popen([python, __file__, folder, *arguments], stdin=subprocess.DEVNULL)
    while not (folder / "socket").exists():
        assert server.poll() is None
        time.sleep(0.02)


def serve(folder: Path, owner: int, apart: bool) -> Callable[[], Any]:
    """Fork for each request while the process ``owner`` lives; in the fork, return what is to be run.

    ``apart``: in a process group of its own.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the forks; a server ends with its owner
    if apart:
        os.setsid()
    (folder / "group").write_text(str(os.getpgrp()))
    for name in IMPORTED:
        importlib.import_module(name)
    if not apart:
        bare = bound(folder / "bare")
        if os.fork() == 0:
            return listen(bare, folder, owner)
        bare.close()
    for module in pkgutil.walk_packages(importlib.import_module("fedbench").__path__, "fedbench."):
        importlib.import_module(module.name)
    return listen(bound(folder / "socket"), folder, owner)


def bound(path: Path) -> socket.socket:
    """Return a socket at ``path``, to which stand-ins can connect at once."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(64)
    Path(f"{path}.new").rename(path)
    return listener


def listen(listener: socket.socket, folder: Path, owner: int) -> Callable[[], Any]:
    """Fork for each request; in the fork, return what is to be run."""
    gc.freeze()  # what is imported is no garbage: no fork looks at it again
    connections = dict[int, socket.socket]()
    ended, child = socket.socketpair()
    child.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(child.fileno())
    while alive(owner):
        ready, _, _ = select.select([listener, ended], [], [], 1)
        if ended in ready:
            ended.recv(4096)
            answer(connections)
        if listener in ready:
            connection, _ = listener.accept()
            if (process := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                listener.close()
                return forked(connection, folder)
            connections[process] = connection
    shutil.rmtree(folder, ignore_errors=True)
    if os.getpgrp() == os.getpid():  # it stands apart, and so do its forks: no Ctrl-C has reached them
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def answer(connections: dict[int, socket.socket]) -> None:
    """Tell the stand-ins of forks that have ended, by their numbers, how they ended."""
    for process in [*connections]:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            connection = connections.pop(process)
            with connection, contextlib.suppress(OSError):  # the stand-in was killed
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def alive(process: int) -> bool:
    """Say whether a process, by its number, has not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def forked(connection: socket.socket, folder: Path) -> Callable[[], Any]:
    """Take over what the stand-in of this fork asks for; return what is to be run."""
    text, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    request = json.loads(text)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    first = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*first, *(path for path in sys.path[1:] if path not in first)]
    for path in first:  # what an interpreter runs at its start
        if (start := Path(path) / "sitecustomize.py").is_file():
            runpy.run_path(str(start))
    return program(request["command"], folder)


def program(command: list[str], folder: Path) -> Callable[[], Any]:
    """Return what is to be run: a script, a text, a module, or a program of the virtual environment."""
    sys.executable = str(folder / "python")  # what it runs is beside it
    if command[0] in ("-c", "-m"):
        sys.argv = [command[0], *command[2:]]
        sys.path.insert(0, "")
        if command[0] == "-m":
            return lambda: runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return lambda: exec(command[1], {"__name__": "__main__"})
    sys.argv = command
    if command[0].endswith(".py"):
        sys.path.insert(0, str(Path(command[0]).parent))
        return lambda: runpy.run_path(command[0], run_name="__main__")
    script = next(iter(entry_points(group="console_scripts", name=command[0])))
    return lambda: sys.exit(script.load()())


def end_with(work: Callable[[], Any]) -> None:
    """Run something and end this process as an interpreter ends, except that nothing that was imported is taken apart.

    That would take more time than most of what is run.
    """
    status = 0
    try:
        work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    end_with(serve(Path(sys.argv[1]), int(sys.argv[2]), apart="apart" in sys.argv))
