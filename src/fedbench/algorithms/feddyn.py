"""FedDyn (Acar et al., ICLR 2021) on any task: a dynamic regulariser makes local optima agree with the global one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Positive
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Client k minimises ``F_k(x_k) - <g_k, x_k> + alpha/2 |x_k - x|^2`` (Algorithm 1); afterwards

        g_k <- g_k - alpha (x_k - x)                                 on participants,
        h <- h - alpha / N sum_k (x_k - x),      x <- mean_k x_k - h / alpha.

    Attributes:
        lr: local step size.
        alpha: weight of the regulariser, above 0.
    """

    lr: NotNegative
    alpha: Positive

    task: ClassVar[type[Task]] = Task
    own: ClassVar[tuple[str, ...]] = ("g_own",)
    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with h = 0."""
        return {"x": w, "h": torch.zeros_like(w)}

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with g_k = 0."""
        return {"g_own": torch.zeros_like(server["x"])}

    def begin(self, problem: Problem, state: State) -> State:
        """Remember the model at the beginning of the round."""
        return state | {"anchor": state["x"]}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent on the regularised objective."""
        x = state["x"]
        gradient, loss = problem.gradient(lambda w: problem.loss(w, batches[0], buffers_of(state)), x)
        gradient = torch.add(gradient - state["g_own"], x - state["anchor"], alpha=self.alpha)
        return state | {"x": torch.add(x, gradient, alpha=-decay * self.lr), "loss": loss}

    def end(self, problem: Problem, state: State) -> State:
        """Update the client's gradient estimate."""
        return state | {"g_own": state["g_own"] - self.alpha * (state["x"] - state["anchor"])}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Move h and the model."""
        mean = self.mean(clients)
        h = server["h"] - self.alpha * problem.share(participants) * (mean["x"] - server["x"])
        return server | mean | {"h": h, "x": mean["x"] - h / self.alpha}
