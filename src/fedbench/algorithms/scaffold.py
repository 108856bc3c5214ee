"""SCAFFOLD (Karimireddy et al., ICML 2020) on any task, with the control variates of option II."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod, average
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Positive
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``x_k <- x_k - lr (grad F_k(x_k) - c_k + c)``; after I steps, with S the participants of N clients,

        c_k <- c_k - c + (x - x_k) / (I lr)
        x <- x + server_lr mean(x_k - x),      c <- c + |S|/N mean(new c_k - old c_k).

    There is no momentum, since momentum would break the identity behind option II.

    Attributes:
        lr: local step size.
        server_lr: global step size.
    """

    lr: Positive
    server_lr: NotNegative

    task: ClassVar[type[Task]] = Task
    own: ClassVar[tuple[str, ...]] = ("c_own",)
    broadcast: ClassVar[tuple[str, ...]] = ("c",)
    uploaded: ClassVar[tuple[str, ...]] = ("c_change",)
    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with a zero global control variate."""
        return {"x": w, "c": torch.zeros_like(w)}

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with a zero control variate on each client."""
        return {"c_own": torch.zeros_like(server["c"])}

    def begin(self, problem: Problem, state: State) -> State:
        """Remember the model at the beginning of the round; ``path`` sums the step sizes."""
        return state | {"start": state["x"], "path": state["x"].new_zeros(len(state["x"]))}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one corrected step."""
        x, lr = state["x"], decay * self.lr
        gradient, loss = problem.gradient(lambda w: problem.loss(w, batches[0], buffers_of(state)), x)
        x = torch.add(x, gradient - state["c_own"] + state["c"], alpha=-lr)
        return state | {"x": x, "path": state["path"] + lr, "loss": loss}

    def end(self, problem: Problem, state: State) -> State:
        """Compute the client's new control variate."""
        change = (state["start"] - state["x"]) / state["path"][:, None] - state["c"]
        return state | {"c_own": state["c_own"] + change, "c_change": change}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Move the model and the global control variate."""
        mean = self.mean(clients)
        c = server["c"] + problem.share(participants) * average(clients, clients["c_change"])
        x = server["x"] + self.server_lr * (mean["x"] - server["x"])
        return server | mean | {"x": x, "c": c}
