"""Atomic checkpoints: a run killed at any moment continues from the last one, to the same bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

FORMAT = 1


def save(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors, numbers, strings, lists and dicts of them) beside ``path``, then rename."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        torch.save({"format": FORMAT, "key": key, "state": state}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(path: Path, key: str, device: torch.device) -> dict[str, Any] | None:
    """Read a checkpoint without executing code; None where there is none of this run that can be read.

    A checkpoint that is truncated, of another run or another format is set aside under ``<name>.unusable``: the run
    starts again, nothing is guessed.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        if content["format"] == FORMAT and content["key"] == key:
            state: dict[str, Any] = content["state"]
            return state
    except Exception:  # torch raises many kinds for damaged files; each means the same here
        pass
    path.replace(path.with_name(path.name + ".unusable"))
    return None
