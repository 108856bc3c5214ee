"""Whether training was long enough: how fast a curve still moved when it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

PARTS = 5
"""The pace is the change in a fifth of a run: as long again at that pace is five of them."""
WINDOW = 2 / PARTS
"""The end of a run that it is fitted to."""
FEWEST = 3
"""Evaluations there, without which nobody can tell."""
ROUNDING = 1e-9


def pace(curve: pd.DataFrame, metric: str, decays: Sequence[float] = ()) -> float:
    """Return by how much a metric changed in a fifth of a run at its end; NaN where nobody can tell.

    The slope of a least-squares line through the evaluations of the last two fifths, of those alone that came after
    the last fall of the step size: what a fall brings is not repeated.

    Args:
        curve: a run's evaluations, a row each, with the column ``iteration``.
        metric: the column that is looked at.
        decays: shares of the run after which step sizes fell.
    """
    if metric not in curve or "iteration" not in curve or curve.empty:
        return math.nan
    share = curve["iteration"] / curve["iteration"].iloc[-1]
    late = share >= 1 - WINDOW - ROUNDING
    if decays:
        late &= share > max(decays) + ROUNDING
    x, y = share[late].to_numpy(), curve.loc[late, metric].to_numpy()
    if len(y) < FEWEST or not np.isfinite(y).all():
        return math.nan
    return float(np.polyfit(x, y, 1)[0]) / PARTS
