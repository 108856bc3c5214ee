"""The base of FCSG, FCSG-M and Acc-FCSG-M: a step moves along the last direction, then computes the next."""

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

    At a synchronisation the algorithms average x_{t-1} and u_t, then move. Here the means are taken at the end of the
    round, just before that move, which gives the same numbers; the evaluated model is the mean of x_{t-1}. Only the
    first period is one step longer: the algorithms first average at t = q, rounds of q steps at t = q + 1.
    The methods work on the loss of any task; for nested draws the loss is f at the mean over the inner samples, and G
    is its gradient.

    Attributes:
        lr: step size.
    """

    lr: NotNegative

    task: ClassVar[type[Task]] = Task
    averaged: ClassVar[tuple[str, ...]] = ("x", "u")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with u = 0; :meth:`init_from_data` computes the first direction."""
        return {"x": w, "u": torch.zeros_like(w)}

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Take the gradient at the initial model as the first direction."""
        return state | {"u": self.gradient(problem, state, state["x"], batches[0])[0]}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Move along the direction, then compute the next direction on the batch."""
        x = torch.add(state["x"], state["u"], alpha=-decay * self.lr)
        gradient, loss = self.gradient(problem, state, x, batches[0])
        moved = state | {"x": x, "loss": loss}
        return moved | {"u": self.renewed(problem, state, gradient, batches[0])}

    def renewed(self, problem: Problem, state: State, gradient: Tensor, batch: Any) -> Tensor:
        """Return u_{t+1} [K, d] from ``gradient`` = G(x_t) [K, d] and the ``state`` before the move."""
        raise NotImplementedError

    def gradient(self, problem: Problem, state: State, x: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return G(x) on a batch [K, d] and the losses [K]."""
        return problem.gradient(lambda w: problem.loss(w, batch, buffers_of(state)), x)
