"""FedAvg (McMahan et al., AISTATS 2017) on the loss of any task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.net import Leaf
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``x <- x - lr grad F(x)``, with F the loss of the task; the server averages x.

    Attributes:
        lr: step size.
    """

    lr: NotNegative

    task: ClassVar[type[Task]] = Task
    overwrites: ClassVar[tuple[str, ...]] = ("x",)

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' losses [K] at parameters ``w``."""
        return problem.loss(w, batch, buffers_of(state))

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent."""
        loss, x = problem.descend(
            lambda w: self.loss(problem, state, w, batches[0]), state["x"], decay * self.lr
        )
        return state | {"x": x, "loss": loss}
