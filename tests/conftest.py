"""Settings that hold for every test: one thread, no deadlines, and the same generated examples each time."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch
os.environ.setdefault("MPLBACKEND", "agg")
settings.register_profile("fedbench", deadline=None, derandomize=True)
settings.load_profile("fedbench")
