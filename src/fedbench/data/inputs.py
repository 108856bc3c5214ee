"""Where the inputs of a run are: copied to its device, or left in the file, which all jobs of a machine share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Where = Literal["auto", "device", "host"]
"""``device``: a copy of each job's own. ``host``: rows are gathered from the file when a batch needs them. ``auto``:
the first where it fits."""
OWN = 1 << 30
"""Bytes of inputs up to which a job on a processor takes a copy of its own."""
SHARE = 0.5
"""Share of a GPU's free memory up to which inputs are copied there."""
_BLOCK = 1 << 26
"""Bytes that are copied at a time."""


Coming = Callable[[], Tensor]
"""Inputs that are being read. A call waits for them and returns them on the device, [K, ...]."""


class Mapped:
    """Inputs that stay where they are, with the few ways of a tensor that batches and evaluations need.

    Args:
        rows: [n, ...], in memory or mapped from a file, or a :class:`fedbench.data.multi_source.Rows`.
        used: [m] positions in ``rows``: input i is ``rows[used[i]]``.
        device: where inputs are brought that are asked for.
    """

    def __init__(self, rows: np.ndarray, used: np.ndarray, device: torch.device) -> None:
        self._rows, self._used, self.device = rows, used, device
        self.shape = torch.Size((len(used), *rows.shape[1:]))
        self.dtype = torch.from_numpy(np.empty(0, rows.dtype)).dtype

    def __len__(self) -> int:
        return len(self._used)

    def dim(self) -> int:
        return len(self.shape)

    def all(self) -> Tensor:
        return copied(self._rows, self._used, self.device)

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Return the inputs at ``index`` [m], on the device; ``dim`` is 0."""
        return self._sent(self._gathered(index.cpu().numpy()))

    def split(self, size: int) -> Iterator[Tensor]:
        """Yield all inputs, ``size`` at a time, on the device; the next are read meanwhile."""
        following = self.coming(np.arange(size)[: len(self)])
        for at in range(size, len(self) + size, size):
            ready = following
            following = self.coming(np.arange(at, min(at + size, len(self))))
            yield ready()

    def chosen(self, at: np.ndarray) -> Mapped:
        """Return the inputs at positions ``at`` [m]; they stay where they are, too."""
        return Mapped(self._rows, self._used[at], self.device)

    def coming(self, index: np.ndarray) -> Coming:
        """Begin to read the inputs at ``index`` [K, ...] in a thread; the call of what is returned waits for them."""
        read = _thread().submit(self._gathered, index.ravel())

        def wait() -> Tensor:
            rows = self._sent(read.result())
            return rows.view(*index.shape, *rows.shape[1:])

        return wait

    def _gathered(self, index: np.ndarray) -> Tensor:
        shape = (len(index), *self.shape[1:])
        pinned = self.device.type == "cuda" and torch.cuda.is_available()
        rows = torch.empty(shape, dtype=self.dtype, pin_memory=pinned)
        _take(self._rows, self._used[index], rows.numpy())
        return rows

    def _sent(self, rows: Tensor) -> Tensor:
        return rows.to(self.device, non_blocking=True)


Inputs = Tensor | Mapped
"""Stored inputs [n, ...]: on the device, or left where they are."""


def place(wanted: Where, bytes_: int, device: torch.device) -> Literal["device", "host"]:
    """Resolve ``auto`` for inputs of so many bytes: by a GPU's free memory, on a processor by a fixed bound.

    There a copy is faster than the file, which is in memory, too, by a few percent of a small network's step; what
    counts is that several jobs share it.
    """
    if wanted != "auto":
        return wanted
    room = SHARE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else OWN
    return "device" if bytes_ <= room else "host"


def size_of(*parts: tuple[np.ndarray, int]) -> int:
    """Return the bytes of so many rows of each."""
    return sum(number * math.prod(rows.shape[1:]) * rows.dtype.itemsize for rows, number in parts)


def stored(
    rows: np.ndarray, used: np.ndarray, device: torch.device, where: Literal["device", "host"]
) -> Inputs:
    """Return the inputs at positions ``used`` [m]: copied to the device, or left where they are."""
    return copied(rows, used, device) if where == "device" else Mapped(rows, used, device)


def chosen(inputs: Inputs, at: np.ndarray) -> Inputs:
    """Return the inputs at positions ``at`` [m]."""
    if isinstance(inputs, Mapped):
        return inputs.chosen(at)
    return inputs[torch.from_numpy(at).to(inputs.device)]


def copied(rows: np.ndarray, used: np.ndarray, device: torch.device) -> Tensor:
    """Copy rows to a device, a part at a time: ``[len(used), ...]``."""
    shape, at_a_time = rows.shape[1:], max(1, _BLOCK // max(1, size_of((rows, 1))))
    dtype = torch.from_numpy(np.empty(0, rows.dtype)).dtype
    result = torch.empty((len(used), *shape), dtype=dtype, device=device)
    for at in range(0, len(used), at_a_time):
        part, block = used[at : at + at_a_time], result[at : at + at_a_time]
        if device.type == "cpu":
            _take(rows, part, block.numpy())
        else:
            block.copy_(torch.from_numpy(_take(rows, part, np.empty((len(part), *shape), rows.dtype))))
    return result


def _take(rows: np.ndarray, positions: np.ndarray, out: np.ndarray) -> np.ndarray:
    rows.take(positions, axis=0, out=out, mode="clip")  # any other mode copies once more
    return out


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """Return the thread that reads ahead: one, as more would compete for the core of the training."""
    return ThreadPoolExecutor(1, "inputs")
