"""Clients in cycles, and samples for them."""

from __future__ import annotations

from typing import Any

SIZES = (20, 26, 31, 12, 9, 17)
CYCLIC = {"rule": "cyclic", "clients": 2, "groups": 3}
PAIRS = {"batch_size": 6, "positives": 2}


def cycles(n: int, **train: Any) -> dict[str, Any]:
    return {"rounds": None, "cycles": n, "participation": CYCLIC, "clients": len(SIZES), **train}
