"""Atomic checkpoints: a run killed at any moment continues from the last one, to the same bytes.

A file begins with :data:`MAGIC` and the SHA-256 of the rest, which is in PyTorch's format: without it, a bit that flips
on the disk would change a weight unnoticed.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from fedbench import __version__
from fedbench.errors import ReadError, cannot_read, is_missing, lacks_memory

log = logging.getLogger(__name__)

FORMAT = 2
MAGIC = b"fedbench checkpoint\n"
HEADER = len(MAGIC) + 2 * hashlib.sha256().digest_size + 1


def save(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors, numbers, strings, lists and dicts of them) beside ``path``, then rename.

    Raises:
        OSError: the disk does not take it; the former file is kept.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            pack({"format": FORMAT, "versions": _versions(), "key": key, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        temporary.unlink(missing_ok=True)
        # torch reports a full disk as a RuntimeError of its own
        raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def load(path: Path, key: str, device: torch.device, like: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read a checkpoint without executing code; None if there is no readable checkpoint of this run.

    A checkpoint is set aside under ``<name>.unusable`` if it is damaged, belongs to another run, another format or
    other versions of the software, or lacks a name of ``like``. Then the run starts again; nothing is guessed.

    Args:
        path: its file.
        key: the key of its run.
        device: the device for its tensors.
        like: a state of the run; the loaded state must have the same names, and tensors of the same shapes.

    Raises:
        ReadError: it cannot be read just now (the disk, the memory of the machine or of the GPU). It stays.
    """
    try:
        with path.open("rb") as file:
            content = unpack(file, device)
        for name, expected in {"format": FORMAT, "key": key, "versions": _versions()}.items():
            if (actual := content.get(name)) != expected:
                raise ValueError(f"its {name} is {actual}, not {expected}")
        state: dict[str, Any] = content["state"]
        _check(state, like, "state")
    except FileNotFoundError:
        return None
    except OSError as error:
        if is_missing(error):
            _set_aside(path, error)
            return None
        raise cannot_read(path, error) from None
    except Exception as error:  # torch raises many kinds for what it cannot use; each means the same here
        if _passes(error):
            raise ReadError(
                f"cannot read {path} now ({_first_line(error)}). It is kept: the same command continues from it "
                "when it can be read again; remove it to train from the start"
            ) from None
        _set_aside(path, error)
        return None
    return state


def _set_aside(path: Path, error: Exception) -> None:
    """Move a checkpoint that is no use out of the way and say so."""
    aside = path.with_name(path.name + ".unusable")
    path.replace(aside)
    log.warning("%s is unusable (%s): kept as %s, the run starts again", path, _first_line(error), aside.name)


class _Summed:
    """A file that is written from start to end, and the checksum of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sha = file, hashlib.sha256()

    def write(self, content: Any) -> int:
        self.sha.update(content)
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()


def pack(content: Mapping[str, Any], file: IO[bytes]) -> None:
    """Write PyTorch's form of ``content`` after a header with its checksum."""
    file.write(bytes(HEADER))
    body = _Summed(file)
    torch.save(content, body)  # type: ignore[arg-type]  # it asks for nothing but write and flush
    file.seek(0)
    file.write(MAGIC + body.sha.hexdigest().encode() + b"\n")


def unpack(file: IO[bytes], device: torch.device) -> Any:
    """Return the content that :func:`pack` wrote; ValueError if the file is damaged."""
    start = file.read(HEADER)
    if not start.startswith(MAGIC):
        raise ValueError("it is not a checkpoint of this format")
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    if start[len(MAGIC) :] != digest.hexdigest().encode() + b"\n":
        raise ValueError("it is not what was written")
    file.seek(HEADER)
    return torch.load(file, map_location=device, weights_only=True)


def _passes(error: Exception) -> bool:
    """Say whether an error is the machine's and not the file's."""
    return isinstance(error, torch.OutOfMemoryError) or lacks_memory(error)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _versions() -> dict[str, str]:
    """Return the versions that numbers depend on: a run is made by one set of them from start to end."""
    return {"fedbench": __version__, "torch": str(torch.__version__), "numpy": np.__version__}


def _check(loaded: Any, like: Any, name: str) -> None:
    """Raise ValueError unless ``loaded`` has the names and shapes of ``like``; it may have more.

    A tensor that is empty in ``like`` may have grown along its first axis.
    """
    if isinstance(like, torch.Tensor):
        same = isinstance(loaded, torch.Tensor) and loaded.dtype == like.dtype and loaded.dim() == like.dim()
        at = 1 if like.dim() and not len(like) else 0
        if not same or loaded.shape[at:] != like.shape[at:]:
            raise ValueError(f"its {name} has another shape or type")
    elif isinstance(like, Mapping):
        for key, value in like.items():
            if not isinstance(loaded, Mapping) or key not in loaded:
                raise ValueError(f"its {name} lacks {key}")
            _check(loaded[key], value, f"{name} {key}")
    elif not isinstance(loaded, type(like)):
        raise ValueError(f"its {name} is no {type(like).__name__}")
