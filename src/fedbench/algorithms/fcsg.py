"""FCSG (Wu, Sun, Hu, Li, Zhang, Huang, NeurIPS 2023), Algorithm 1 without momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fedbench.algorithms._pending import Pending
from fedbench.problem import Problem, State
from fedbench.ranges import NotNegative


@dataclass(frozen=True)
class Method(Pending):
    """``u_{t+1} <- G(x_t)``, the gradient of the loss on b outer samples with m inner samples each.

    x and u are averaged, as published, and the traffic of both is counted, although averaging x one step later would
    have the same effect.

    Attributes:
        lr: step size.
    """

    lr: NotNegative

    def renewed(self, problem: Problem, state: State, gradient: Tensor, batch: Any) -> Tensor:
        """Take the newest gradient."""
        return gradient
