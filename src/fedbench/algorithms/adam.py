"""Adam (Kingma and Ba, ICLR 2015) on each client; the server averages the models. With one client it is plain Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.problem import Batch, Problem, State
from fedbench.ranges import Memory, Positive


@dataclass(frozen=True)
class Method(fedavg.Method):
    """With g the gradient, t the number of the client's steps so far, and moments m and v that stay on the client,

        m <- beta_1 m + (1 - beta_1) g,     v <- beta_2 v + (1 - beta_2) g^2,
        x <- x - lr m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon).

    Attributes:
        lr: step size.
        beta_1: decay of the first moment, in [0, 1).
        beta_2: decay of the second moment, in [0, 1).
        epsilon: added to the root, above 0.
    """

    lr: Positive
    beta_1: Memory
    beta_2: Memory
    epsilon: Positive

    own: ClassVar[tuple[str, ...]] = ("m", "v", "t")

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with zero moments."""
        zero = torch.zeros_like(server["x"])
        return {"m": zero, "v": zero, "t": zero.new_zeros(())}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step."""
        g, loss = problem.gradient(lambda w: self.loss(problem, state, w, batches[0]), state["x"])
        t = state["t"] + 1
        m = torch.lerp(state["m"], g, 1 - self.beta_1)
        v = torch.lerp(state["v"], g * g, 1 - self.beta_2)
        root = (v / self._left(self.beta_2, t)).sqrt() + self.epsilon
        x = torch.addcdiv(state["x"], m / self._left(self.beta_1, t), root, value=-decay * self.lr)
        return state | {"x": x, "m": m, "v": v, "t": t, "loss": loss}

    @staticmethod
    def _left(beta: float, t: Tensor) -> Tensor:
        """Return 1 - beta^t, by which a moment is divided to correct its bias, [K, 1]."""
        return (1 - beta**t)[:, None]
