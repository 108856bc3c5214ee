"""CLIMB over FedAvg."""

from __future__ import annotations

from dataclasses import dataclass

from fedbench.algorithms import fedavg
from fedbench.algorithms._climb import Climb
from fedbench.ranges import Count, NotNegative


@dataclass(frozen=True)
class Method(Climb, fedavg.Method):
    """CLIMB with FedAvg as the base solver, the paper's choice; dual_lr = 0 gives FedAvg. See :class:`Climb`."""

    dual_lr: NotNegative
    tolerance: NotNegative
    dual_scale: str
    dual_every: Count
    dual_max: NotNegative
    dual_losses: str = "clean"
