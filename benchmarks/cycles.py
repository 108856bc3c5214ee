"""The processor's own count of cycles in user space, which other work changes least (Linux, x86-64)."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import struct
from collections.abc import Callable

_SYSCALL, _SIZE = 298, 112
_DISABLED, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_ENABLE, _DISABLE, _RESET = 0x2400, 0x2401, 0x2403


@functools.cache
def _counter() -> int:
    """Open a counter of this thread's cycles; see perf_event_open(2)."""
    flags = _DISABLED | _NO_KERNEL | _NO_HYPERVISOR
    wanted = struct.pack("IIQQQQQ", 0, _SIZE, 0, 0, 0, 0, flags).ljust(_SIZE, b"\0")
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(
        _SYSCALL, ctypes.create_string_buffer(wanted), 0, -1, -1, 0
    )
    if descriptor < 0:
        raise SystemExit("error: this machine counts no cycles for us (perf_event_open); leave --cycles out")
    return descriptor


def cycles(work: Callable[[], object]) -> float:
    """Return the billions of cycles of one call."""
    counter = _counter()
    fcntl.ioctl(counter, _RESET, 0)
    fcntl.ioctl(counter, _ENABLE, 0)
    work()
    fcntl.ioctl(counter, _DISABLE, 0)
    return float(struct.unpack("Q", os.read(counter, 8))[0]) / 1e9
