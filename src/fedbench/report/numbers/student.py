"""Student's t as `scipy.stats` has it, whose import takes as long as a table; the functions below it load at once."""

from __future__ import annotations

from typing import Any

from scipy import special


def quantile(share: float, freedom: int | float) -> float:
    """Return the value that a ``share`` of the distribution lies below."""
    return float(special.stdtrit(freedom, share))


def tail(t: Any, freedom: int | float) -> Any:
    """Return the share above each ``t``, infinite ones included."""
    return special.stdtr(freedom, -t)
