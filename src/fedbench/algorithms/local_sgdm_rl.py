"""LocalSGDM_RL: LocalSGDM on the ratio loss of Wang et al. (AAAI 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedbench.algorithms import local_sgdm
from fedbench.algorithms._ratio import ratio_weights
from fedbench.engine.problem import Batch, Problem, State, buffers_of
from fedbench.net import Leaf


@dataclass(frozen=True)
class Method(local_sgdm.Method):
    """LocalSGDM with cross-entropy weighted by class; the server renews the weights at each synchronisation.

    Attributes:
        n_aux: samples of each class in the server's auxiliary set.
        ratio_alpha: constant part of a class weight.
        ratio_beta: weight of the gradient ratio; 0 gives LocalSGDM.
    """

    n_aux: int
    ratio_alpha: float
    ratio_beta: float

    broadcast: ClassVar[tuple[str, ...]] = ("class_weights",)

    def _weights(self, problem: Problem, server: State) -> Tensor:
        return ratio_weights(
            problem, server["x"], buffers_of(server), self.n_aux, self.ratio_alpha, self.ratio_beta
        )

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with equal weights; the first round's weights come from the first synchronisation."""
        return super().init(problem, w) | {
            "class_weights": w.new_full((problem.n_classes,), self.ratio_alpha)
        }

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' class-weighted cross-entropy [K]."""
        return problem.cross_entropy(w, batch, buffers_of(state), state["class_weights"])

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average, then renew the class weights at the averaged model."""
        server = super().server(problem, server, clients, participants, round_index)
        return server | {"class_weights": self._weights(problem, server)}
