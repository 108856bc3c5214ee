"""Snakemake, ``fedbench`` and a workflow's jobs as forks of a process that has imported the libraries they import.

A new interpreter takes two seconds to import Snakemake and four to import PyTorch, in each of hundreds of calls and
jobs. Small stand-ins of the programs ask this server for a fork that does their work with their files, folder and
environment. Nothing of fedbench is imported before the fork: a test may have a copy of its own in PYTHONPATH.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
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
    if not command or command[0] != "fedbench" and not command[0].endswith(".py"):
        os.execv("{python}", ["{python}", *command])
request = {{"command": command, "folder": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{folder}/socket")
    socket.send_fds(server, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    status = int(server.recv(16))
sys.exit(status if status >= 0 else 128 - status)
"""


@functools.cache
def stand_ins() -> Path:
    """Start the server of this process, which ends with it; return the folder of the stand-ins.

    These are ``snakemake``, ``fedbench``, and ``python`` for scripts and ``-m fedbench``. They end as what they stand
    for; what a signal ended, as a shell says it. A signal to them reaches no fork.
    """
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    for name in ("fedbench", "python", "snakemake"):
        (folder / name).write_text(STAND_IN.format(python=sys.executable, name=name, folder=folder))
        (folder / name).chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, folder], stdin=subprocess.PIPE)
    while not (folder / "socket").exists():
        assert server.poll() is None
        time.sleep(0.02)
    return folder


def serve(folder: Path) -> Callable[[], Any]:
    """Fork for each request; in the fork, return what is to be run."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # what is imported is no garbage: no fork looks at it again
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "new"))
        listener.listen(64)
        (folder / "new").rename(folder / "socket")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for the forks
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return forked(connection, folder)
            connection.close()
    shutil.rmtree(folder)
    os._exit(0)


def forked(connection: socket.socket, folder: Path) -> Callable[[], Any]:
    """Fork once more, to answer with the exit status; in the fork, return what is to be run."""
    text, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    if process := os.fork():
        _, status = os.waitpid(process, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
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
    first = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*first, *(path for path in sys.path[1:] if path not in first)]
    for path in first:  # what an interpreter runs at its start
        if (start := Path(path) / "sitecustomize.py").is_file():
            runpy.run_path(str(start))
    return program(request["command"], folder)


def program(command: list[str], folder: Path) -> Callable[[], Any]:
    """Return what is to be run: a script, or a program of the virtual environment."""
    sys.argv = command
    if command[0].endswith(".py"):
        sys.path.insert(0, str(Path(command[0]).parent))
        return lambda: runpy.run_path(command[0], run_name="__main__")
    if command[0] == "snakemake":
        sys.executable = str(folder / "python")  # the workflow takes the programs beside it
    script = next(iter(entry_points(group="console_scripts", name=command[0])))
    return lambda: sys.exit(script.load()())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))()
