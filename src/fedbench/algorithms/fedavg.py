"""FedAvg (McMahan et al., AISTATS 2017) on cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedbench.algorithms._base import FederatedMethod
from fedbench.engine.problem import Batch, Problem, State, buffers_of
from fedbench.net import Leaf


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``x <- x - lr grad CE(x)``; the server averages x.

    Attributes:
        lr: step size.
    """

    lr: float

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' losses [K] at parameters ``w``."""
        return problem.cross_entropy(w, batch, buffers_of(state))

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent."""
        gradient, loss = problem.gradient(lambda w: self.loss(problem, state, w, batches[0]), state["x"])
        # into the gradient's memory: one vector less to hold in the processor's cache
        x = torch.add(state["x"], gradient, alpha=-decay * self.lr, out=gradient)
        return state | {"x": x, "loss": loss}
