"""Randomness as an argument: every draw comes from a stream named by (seed, purpose, ids)."""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """Return the generator of one purpose, the same on every machine, worker and resumption.

    Streams of different purposes or ids are independent, so what one component draws never
    shifts what another one sees: all methods of a setting get the same partition, participants
    and batches. A missing id is 0, as NumPy pads with zeros: a purpose has the same number of ids everywhere.

    Args:
        seed: the run's seed, >= 0.
        purpose: what the numbers are for, e.g. ``"batches"``.
        ids: further coordinates such as the client and the epoch, each >= 0.
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *ids])
