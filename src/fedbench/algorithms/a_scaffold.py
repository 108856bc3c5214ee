"""Amplified SCAFFOLD (Crawshaw and Liu, NeurIPS 2024): control variates change once in a window of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms.a_fedavg import amplified
from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import Amplification, Positive


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``x_k <- x_k - lr (grad CE(x_k) - c_k + c)``; the server averages x_k. A window is a cycle; after its
    last round

        x <- x_0 + kappa (x - x_0),    c_k <- g_k,    c <- c + sum_k (g_k - old c_k) / N

    with x_0 the model at the beginning of the cycle, and g_k the mean of client k's uncorrected gradients in the cycle;
    c_k changes and k enters the sum only if k took part at least once. During the first cycle c = c_k = 0, as in
    A-FedAvg.

    Clients are away when a cycle ends, so a client changes its c_k when it next takes part. With each model it sends
    how g_k has changed, so that the server's sum is complete at the end of the cycle.

    Attributes:
        lr: local step size.
        kappa: factor of a cycle's change, 1 or more.
    """

    lr: Positive
    kappa: Amplification

    own: ClassVar[tuple[str, ...]] = ("c_own", "seen", "steps", "cycle")
    broadcast: ClassVar[tuple[str, ...]] = ("c",)
    uploaded: ClassVar[tuple[str, ...]] = ("c_change",)
    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with zero control variates; ``pending`` is the change of c at the end of the running cycle."""
        return {"x": w, "start": w, "c": torch.zeros_like(w), "pending": torch.zeros_like(w)}

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with a zero control variate; ``seen`` is the mean of ``steps`` gradients of the cycle ``cycle``."""
        zero, nothing = torch.zeros_like(server["c"]), server["c"].new_zeros((), dtype=torch.int64)
        return {"c_own": zero, "seen": zero, "steps": nothing, "cycle": nothing}

    def begin(self, problem: Problem, state: State) -> State:
        """Change the control variate if the cycle of its gradients is over; ``sum`` adds up this round's gradients."""
        over = state["cycle"] < problem.cycle.number
        renew = (over & (state["steps"] > 0))[:, None]
        return state | {
            "c_own": torch.where(renew, state["seen"], state["c_own"]),
            "steps": torch.where(over, 0, state["steps"]),
            "cycle": torch.full_like(state["cycle"], problem.cycle.number),
            "sum": torch.zeros_like(state["x"]),
            "round_steps": torch.zeros_like(state["steps"]),
        }

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one corrected step."""
        x = state["x"]
        gradient, loss = problem.gradient(
            lambda w: problem.cross_entropy(w, batches[0], buffers_of(state)), x
        )
        moved = torch.add(x, gradient - state["c_own"] + state["c"], alpha=-decay * self.lr)
        counted = {"sum": state["sum"] + gradient, "round_steps": state["round_steps"] + 1}
        return state | counted | {"x": moved, "loss": loss}

    def end(self, problem: Problem, state: State) -> State:
        """Add the round's gradients to the cycle's mean, and compute by how much the mean changes."""
        before, steps = state["steps"], state["steps"] + state["round_steps"]
        share = (before / steps).to(state["sum"].dtype)[:, None]
        seen = share * state["seen"] + state["sum"] / steps[:, None]
        known = torch.where((before > 0)[:, None], state["seen"], state["c_own"])
        return state | {"seen": seen, "steps": steps, "c_change": seen - known}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average; at the end of a cycle amplify and change the global control variate."""
        change = clients["c_change"]
        if problem.weights is not None:
            change = change * (problem.n_clients * problem.weights[participants]).to(change)[:, None]
        pending = server["pending"] + change.sum(0) / problem.n_clients
        server = server | self.mean(clients) | {"pending": pending}
        if problem.cycle.ends:
            server = server | {"c": server["c"] + pending, "pending": torch.zeros_like(pending)}
        return amplified(problem, server, self.kappa)
