"""Atomic checkpoints: a run killed at any moment continues from the last one, to the same bytes."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedbench import __version__
from fedbench.errors import UserError

log = logging.getLogger(__name__)

FORMAT = 1


def save(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors, numbers, strings, lists and dicts of them) beside ``path``, then rename.

    Raises:
        OSError: the disk does not take it; what was there before is still there.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            torch.save({"format": FORMAT, "versions": _versions(), "key": key, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        temporary.unlink(missing_ok=True)
        # torch reports a full disk as a RuntimeError of its own
        raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def load(path: Path, key: str, device: torch.device, like: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read a checkpoint without executing code; None where there is none of this run that can be read.

    A checkpoint that is truncated, of another run, another format or other versions of the software, or that does
    not hold what ``like`` does, is set aside under ``<name>.unusable``: the run starts again, nothing is guessed.

    Args:
        path: where it lies.
        key: the run it must be of.
        device: where its tensors go.
        like: a state of the run: the same names, and tensors of the same shapes, must be in what is loaded.

    Raises:
        UserError: it cannot be read just now (the disk, the memory of the machine or of the card). It stays.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        for name, expected in {"format": FORMAT, "key": key, "versions": _versions()}.items():
            if (found := content.get(name)) != expected:
                raise ValueError(f"its {name} is {found}, not {expected}")
        state: dict[str, Any] = content["state"]
        _check(state, like, "state")
    except Exception as error:  # torch raises many kinds for damaged files; each means the same here
        if _passes(error):
            raise UserError(
                f"cannot read {path} now ({_first_line(error)}). It is kept: the same command goes on from it when "
                "that is over; remove it to train from the start"
            ) from None
        aside = path.with_name(path.name + ".unusable")
        path.replace(aside)
        log.warning(
            "%s is unusable (%s): kept as %s, the run starts again", path, _first_line(error), aside.name
        )
        return None
    return state


def _passes(error: Exception) -> bool:
    """Say whether an error is the machine's and not the file's; a damaged file can end in an invalid seek (EINVAL)."""
    if isinstance(error, OSError):
        return error.errno != errno.EINVAL
    # the last is how torch says it on a CPU
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _versions() -> dict[str, str]:
    """Return the versions that numbers depend on: a run is made by one set of them from start to end."""
    return {"fedbench": __version__, "torch": str(torch.__version__), "numpy": np.__version__}


def _check(found: Any, like: Any, name: str) -> None:
    """Raise ValueError unless ``found`` has the names and shapes of ``like``; it may have more."""
    if isinstance(like, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.shape != like.shape or found.dtype != like.dtype:
            raise ValueError(f"its {name} has another shape or type")
    elif isinstance(like, Mapping):
        for key, value in like.items():
            if not isinstance(found, Mapping) or key not in found:
                raise ValueError(f"its {name} lacks {key}")
            _check(found[key], value, f"{name} {key}")
    elif not isinstance(found, type(like)):
        raise ValueError(f"its {name} is no {type(like).__name__}")
