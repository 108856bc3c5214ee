"""Puts right what a crash or a clock that was wrong left in a project's folder, before a workflow begins.

Snakemake locks a folder with files that outlive it when it is killed, and then asks for ``--unlock``. Here each
workflow also holds a lock of the operating system, which dies with it: if that lock is free,
Snakemake's is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from fedbench import files
from fedbench.errors import cannot_write

AHEAD = 60.0
"""Seconds by which a file's time may be ahead of the clock: hosts that share a disk differ by a little."""
ROOM = 1 << 18
"""Bytes that Snakemake's own notes and log take, and more: without, it ends in tracebacks."""
_held: list[IO[str]] = []


def release_stale_lock(folder: Path = Path(".snakemake")) -> bool:
    """Remove Snakemake's lock if the workflow that made it is dead, and mark the folder as in use by this process.

    Locks of the operating system may not reach other hosts: a lock that another host could have made is left alone.
    Says on stderr who else is at work in the folder.

    Returns:
        Whether a stale lock was removed.

    Raises:
        WriteError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        users = (folder / "fedbench.lock").open("a+")
    except OSError as error:
        raise cannot_write(folder, error) from None
    _held.append(users)  # held until this process ends
    me, stale = f"{platform.node()} {os.getpid()}", False
    with contextlib.suppress(OSError):  # a file system without locks: Snakemake's own are all there is
        alone = files.try_lock(users.fileno())
        users.seek(0)
        named = [line.split() for line in users if len(line.split()) == 2]
        locks = folder / "locks"
        if alone and all(host == platform.node() for host, _ in named):
            stale = locks.is_dir() and any(locks.iterdir())
            if stale:
                _unlock(folder.parent)
            users.truncate(0)
        elif not alone:
            others = [pid for host, pid in named if host == platform.node() and files.alive(int(pid))]
            print(
                f"note: another workflow is at work in this folder (process {', '.join(others) or '?'}); where it "
                "makes the same files, nothing is done here: wait for it, or stop it",
                file=sys.stderr,
            )
        print(me, file=users, flush=True)
        fcntl.flock(users, fcntl.LOCK_SH)
    return stale


def _unlock(folder: Path) -> None:
    """Let Snakemake remove its own lock, of a workflow without rules: whose it was does not matter."""
    command = [sys.executable, "-m", "snakemake", "--unlock", "--snakefile", os.devnull]
    options = ["--directory", str(folder), "--profile", "none", "--cores", "1"]
    subprocess.run([*command, *options], capture_output=True, check=False)


def settle_clock(paths: Iterable[Path], now: float | None = None) -> list[Path]:
    """Give files whose times lie in the future the time it is now, in their order; return them.

    They were written while the clock was ahead. Left alone, everything made from them would look out of date, and
    Snakemake would refuse what it makes now as older than what it was made from.
    """
    now = time.time() if now is None else now
    ahead = []
    for path in paths:
        with contextlib.suppress(OSError):
            when = path.stat().st_mtime
            if when > now + AHEAD:
                ahead.append((when, path))
    ahead.sort()
    for place, (_, path) in enumerate(ahead):
        with contextlib.suppress(OSError):
            when = now - 1e-3 * (len(ahead) - place)
            os.utime(path, (when, when))
    return [path for _, path in ahead]


def put_right(data_dir: str) -> None:
    """Free what a killed workflow left locked, and mend times that a wrong clock gave to files.

    Raises:
        WriteError: the folder cannot be written.
    """
    release_stale_lock()
    files.check_room(Path(".snakemake"), ROOM)
    made = [f"{data_dir}/prepared", f"{data_dir}/partitions", "config", "results/cells", "tables", "figures"]
    settle_clock(path for folder in made for path in Path(folder).rglob("*") if path.is_file())
