"""Whether training was long enough: how fast a curve still moved at the end, at the step size it was trained with.

After step sizes have fallen a curve is flat because the steps are small: how much a longer training would bring shows
before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

PARTS = 5
"""The pace is the change in a fifth of a training: as long again at that pace is five of them."""
WINDOW = 2 / PARTS
"""The end of a training that it is fitted to."""
FEWEST = 3
"""Evaluations there; with fewer the pace is not known."""
ROUNDING = 1e-9


def pace(curve: pd.DataFrame, metric: str, decays: Sequence[float] = ()) -> float:
    """Return by how much a metric changed in the last fifth of a training; NaN where it is not known.

    The slope of a least-squares line through the evaluations of its last two fifths. Where step sizes fall, a training
    is the part of the run before they first do.

    Args:
        curve: a run's evaluations, a row each, with the column ``iteration``.
        metric: the column that is looked at.
        decays: shares of the run after which step sizes fell, ascending.
    """
    if metric not in curve or "iteration" not in curve or curve.empty:
        return math.nan
    full, iterations = decays[0] if decays else 1.0, curve["iteration"].to_numpy()
    share = iterations / (full * iterations[-1])
    late = (share >= 1 - WINDOW - ROUNDING) & (share <= 1 + ROUNDING)
    x, y = share[late], curve[metric].to_numpy()[late]
    if len(y) < FEWEST or not np.isfinite(y).all():
        return math.nan
    return float(np.polyfit(x, y, 1)[0]) / PARTS
