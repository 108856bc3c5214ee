"""CLIMB over SCAFFOLD."""

from __future__ import annotations

from dataclasses import dataclass

from fedbench.algorithms import scaffold
from fedbench.algorithms._climb import Climb


@dataclass(frozen=True)
class Method(Climb, scaffold.Method):
    """CLIMB with SCAFFOLD as its solver; dual_lr = 0 gives SCAFFOLD. See :class:`Climb`."""

    dual_lr: float
    tolerance: float
    dual_scale: str
    loss_batches: int
    dual_every: int
    dual_max: float
