"""A GPU of one's own: processes of one machine share its GPUs without ever meeting on one."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import IO

import torch

from fedbench import files
from fedbench.errors import UserError, cannot_write
from fedbench.train.progress import say

VISIBLE = "CUDA_VISIBLE_DEVICES"
LOCKS = Path("/tmp")  # not $TMPDIR, which may differ between jobs that must meet here
WAIT_SECONDS = 0.5
_held: list[IO[str]] = []


def take(locks: Path = LOCKS) -> str | None:
    """Reserve a free GPU for the rest of this process and let CUDA see no other; wait while all are in use.

    Must come before CUDA is started. A GPU is reserved by a file lock in ``<locks>/fedbench-<user id>``, named by the
    GPU's own identifier; the lock dies with the process. Where ``CUDA_VISIBLE_DEVICES`` names one GPU already (a
    scheduler gave it, or the user means to share it), that one is used as it is; where it names several, one of these.

    Returns:
        The identifier of the GPU, or None where there was nothing to choose.

    Raises:
        UserError: the folder of the locks belongs to another user.
    """
    offered = _offered(os.environ.get(VISIBLE))
    if not offered:
        return None
    folder = _folder(locks)
    waiting = False
    while True:
        for name, identifier in offered.items():
            lock = (folder / f"{identifier.replace('/', '-')}.lock").open("a")
            if files.try_lock(lock.fileno()):
                _held.append(lock)
                os.environ[VISIBLE] = name
                return name
            lock.close()
        if not waiting:
            waiting = True
            say(f"  waiting for a GPU: all {len(offered)} are in use by other runs")
        time.sleep(WAIT_SECONDS)


def wanted(device: str) -> bool:
    """Say whether runs train on a GPU where there is one; asking PyTorch would start CUDA before one is reserved."""
    hidden = os.environ.get(VISIBLE) in ("", "-1")
    return device != "cpu" and torch.version.cuda is not None and not hidden and bool(installed())


def installed() -> list[str]:
    """List the GPUs that the driver knows, by identifier, in its order; a GPU that is divided, by its parts."""
    try:
        said = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    identifiers: list[str] = []
    for kind, rest in re.findall(r"\(UUID: (GPU|MIG)(-[\w/-]+)\)", said):
        if kind == "MIG" and identifiers and identifiers[-1].startswith("GPU"):
            identifiers.pop()  # the GPU whose parts follow: CUDA sees the parts alone
        identifiers.append(kind + rest)
    return identifiers


def _offered(visible: str | None) -> dict[str, str]:
    """Return the GPUs to choose from: what CUDA is to be told, and the identifier to lock."""
    if visible is None:
        return {name: name for name in installed()}
    named = [part.strip() for part in visible.split(",") if part.strip()]
    if len(named) < 2:
        return {}
    known = installed()
    return {name: known[int(name)] if name.isdigit() and int(name) < len(known) else name for name in named}


def _folder(locks: Path) -> Path:
    folder = locks / f"fedbench-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        owner = folder.stat().st_uid
    except OSError as error:
        raise cannot_write(folder, error) from None
    if owner != os.getuid() or folder.is_symlink():
        raise UserError(f"{folder} belongs to another user; remove it, or choose a GPU with {VISIBLE}=0")
    return folder
