"""Ratio-Loss: FedAvg on cross-entropy weighted by class (Wang et al., AAAI 2021), as climb compares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.algorithms._ratio import ratio_weights
from fedbench.engine.problem import Batch, Problem, State, buffers_of
from fedbench.net import Leaf


@dataclass(frozen=True)
class Method(fedavg.Method):
    """FedAvg with class weights ``ratio_alpha + ratio_beta R_c`` renewed by the server every few rounds.

    Attributes:
        n_aux: samples of each class in the server's auxiliary set.
        ratio_alpha: constant part of a class weight.
        ratio_beta: weight of the gradient ratio; 0 with ratio_alpha = 1 gives FedAvg.
        renew_every: rounds between two computations of the weights.
    """

    n_aux: int
    ratio_alpha: float
    ratio_beta: float
    renew_every: int

    broadcast: ClassVar[tuple[str, ...]] = ("class_weights",)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with equal weights."""
        return super().init(problem, w) | {
            "class_weights": w.new_full((problem.n_classes,), self.ratio_alpha)
        }

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' class-weighted cross-entropy [K]."""
        return problem.cross_entropy(w, batch, buffers_of(state), state["class_weights"])

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average, then renew the class weights at the averaged model when it is time."""
        server = super().server(problem, server, clients, participants, round_index)
        if (round_index + 1) % self.renew_every:
            return server
        weights = ratio_weights(
            problem, server["x"], buffers_of(server), self.n_aux, self.ratio_alpha, self.ratio_beta
        )
        return server | {"class_weights": weights}
