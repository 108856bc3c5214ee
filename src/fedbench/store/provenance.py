"""Where a number comes from: commit, versions, hardware."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fedbench import __version__

GIVEN = "FEDBENCH_COMMIT"
"""The variable that says, for a copy without git, ``COMMIT:DIGEST``: the commit whose sources have this digest."""


@functools.cache
def commit() -> str:
    """Return the commit of the code that runs, ``+`` appended when its files differ.

    Where there is no git: that of :data:`GIVEN` if the code is that commit's, else the package's version and the digest
    of its :func:`sources`.
    """
    return commit_of(Path(__file__).parents[3])


def commit_of(root: Path) -> str:
    """Return the commit of a checkout, as :func:`commit`."""
    try:
        if not (root / ".git").exists():
            raise FileNotFoundError("installed, maybe inside the repository of something else")
        # git asks for trust in a clone that another user owns; this process runs its code already
        git = ["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root)]
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "src", "config"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        known, _, digest = os.environ.get(GIVEN, "").partition(":")
        return known if known and digest == sources() else f"v{__version__}-{sources()}"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def sources(package: Path = Path(__file__).parents[1]) -> str:
    """Return a digest of Python files and their names: equal for the same code, in a checkout or installed."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith("project/"):  # a wheel's, beside the package in a checkout
            continue
        for part in (name.encode(), path.read_bytes()):
            digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:12]


def package_version(name: str) -> str:
    """Return an installed package's version, or ``unknown``."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


@functools.cache
def hardware(device: str) -> str:
    """Name the processor or the GPU."""
    if device == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def provenance(device: str) -> dict[str, Any]:
    """Collect what a run records about its making, times apart."""
    packages = ("torch", "numpy", "scikit-learn")
    return {
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            "fedbench": __version__,
            **{name: package_version(name) for name in packages},
        },
        "hardware": hardware(device),
        "device": device,
    }
