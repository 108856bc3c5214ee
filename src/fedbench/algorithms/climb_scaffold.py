"""CLIMB over SCAFFOLD."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedbench.algorithms import scaffold
from fedbench.algorithms._climb import Climb, weights
from fedbench.problem import Problem, State
from fedbench.ranges import Count, NotNegative


@dataclass(frozen=True)
class Method(Climb, scaffold.Method):
    """CLIMB with SCAFFOLD as the base solver; dual_lr = 0 gives SCAFFOLD. See :class:`Climb`.

    The global control variate is the weighted mean of the clients' variates, mean(w_i c_i). With the plain mean,
    corrected steps would point along the unweighted gradient whatever the weights, and the constraints would have no
    effect. For the weighted mean the server keeps the variates that it receives; clients send nothing more.
    """

    dual_lr: NotNegative
    tolerance: NotNegative
    dual_scale: str
    dual_every: Count
    dual_max: NotNegative
    dual_losses: str = "clean"

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with zero variates, lambda = 0."""
        zeros = w.new_zeros(problem.n_clients, len(w))
        return super().init(problem, w) | {"variates": zeros, "c_mean": torch.zeros_like(w)}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Let CLIMB aggregate, then compute the weighted global variate."""
        place = torch.tensor(participants, device=server["x"].device)
        variates = server["variates"].index_copy(0, place, clients["c_own"])
        plain = server | {"c": server["c_mean"]}
        server = super().server(problem, plain, clients, participants, round_index)
        extra = ((weights(server["duals"]) - 1)[:, None] * variates).mean(0)
        return server | {"variates": variates, "c_mean": server["c"], "c": server["c"] + extra}
