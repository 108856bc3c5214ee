"""FedProx (Li et al., MLSys 2020) on any task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """FedAvg whose clients minimise ``F(x) + mu/2 |x - x_r|^2``, with x_r the model at the beginning of the round.

    Attributes:
        lr: step size.
        mu: weight of the proximal term; 0 gives FedAvg.
    """

    lr: NotNegative
    mu: NotNegative

    task: ClassVar[type[Task]] = Task

    def begin(self, problem: Problem, state: State) -> State:
        """Remember the model at the beginning of the round."""
        return state | {"anchor": state["x"]}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent on the proximal objective."""
        x = state["x"]
        gradient, loss = problem.gradient(lambda w: problem.loss(w, batches[0], buffers_of(state)), x)
        if self.mu:
            gradient = torch.add(gradient, x - state["anchor"], alpha=self.mu)
        return state | {"x": torch.add(x, gradient, alpha=-decay * self.lr), "loss": loss}
