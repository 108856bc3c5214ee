"""What FCSG, FCSG-M and Acc-FCSG-M have in common: they move with the direction of the step before, then renew it."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative
from fedbench.task import Task


class Pending(FederatedMethod):
    """A local step of Algorithms 1 and 2 of fcsg, from u_1 = G(x_0; B samples):

        x_t <- x_{t-1} - lr u_t,      draw samples,      u_{t+1} <- as the method says.

    At a synchronisation the algorithms average x_{t-1} and u_t, then move. Here the means are taken when a round ends,
    which is the moment before that move: the same numbers, and the model that is evaluated is the mean of x_{t-1}. Only
    the first period is one step longer: the algorithms first average at t = q, rounds of q steps at t = q + 1.
    Every task's loss will do: for nested draws it is f at the mean over the inner samples, whose gradient is G.

    Attributes:
        lr: step size.
    """

    lr: NotNegative

    task: ClassVar[type[Task]] = Task
    averaged: ClassVar[tuple[str, ...]] = ("x", "u")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start without a direction: the first comes from data."""
        return {"x": w, "u": torch.zeros_like(w)}

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Take the gradient at the initial model as the first direction."""
        return state | {"u": self.gradient(problem, state, state["x"], batches[0])[0]}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Move, draw, renew."""
        x = torch.add(state["x"], state["u"], alpha=-decay * self.lr)
        gradient, loss = self.gradient(problem, state, x, batches[0])
        moved = state | {"x": x, "loss": loss}
        return moved | {"u": self.renewed(problem, state, gradient, batches[0])}

    def renewed(self, problem: Problem, state: State, gradient: Tensor, batch: Any) -> Tensor:
        """Return u_{t+1} [K, d] from G(x_t) and the ``state`` before the move."""
        raise NotImplementedError

    def gradient(self, problem: Problem, state: State, x: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return G(x) on a batch [K, d] and the losses [K]."""
        return problem.gradient(lambda w: problem.loss(w, batch, buffers_of(state)), x)
