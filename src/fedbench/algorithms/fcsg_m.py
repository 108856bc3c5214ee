"""FCSG-M (Wu, Sun, Hu, Li, Zhang, Huang, NeurIPS 2023), Algorithm 1 with momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fedbench.algorithms._pending import Pending
from fedbench.problem import Problem, State
from fedbench.ranges import NotNegative, Weight


@dataclass(frozen=True)
class Method(Pending):
    """``u_{t+1} <- (1 - beta) u_t + beta G(x_t)``; beta = 1 is FCSG.

    Attributes:
        lr: step size.
        beta: weight of the newest gradient, in (0, 1].
    """

    lr: NotNegative
    beta: Weight

    def renewed(self, problem: Problem, state: State, gradient: Tensor, batch: Any) -> Tensor:
        """Return the weighted mean of the direction and the newest gradient."""
        return (1 - self.beta) * state["u"] + self.beta * gradient
