"""Ratio loss (Wang et al., AAAI 2021): cross-entropy weighted by class, over any solver whose ``loss`` it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedbench.contract.method import FederatedMethod
from fedbench.contract.problem import Batch, Problem, State, buffers_of
from fedbench.contract.task import LabelledTask, Task
from fedbench.net import Leaf
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.objectives.ratio import class_weights

if TYPE_CHECKING:
    Base = FederatedMethod
else:
    Base = object


class RatioLoss(Base):
    """Class weights ``ratio_alpha + ratio_beta R_c``, renewed by the server at the averaged model.

    Mixed in before a base solver.

    Attributes:
        n_aux: samples of each class in the server's auxiliary set.
        ratio_alpha: constant part of a class weight.
        ratio_beta: weight of the gradient ratio; 0 with ratio_alpha = 1 gives the base solver.
    """

    n_aux: int
    ratio_alpha: float
    ratio_beta: float

    task: ClassVar[type[Task]] = LabelledTask
    broadcast: ClassVar[tuple[str, ...]] = ("class_weights",)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with equal weights; others come from the first renewal."""
        return super().init(problem, w) | {
            "class_weights": w.new_full((problem.n_classes,), self.ratio_alpha)
        }

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' class-weighted cross-entropy [K]."""
        return problem.cross_entropy(w, batch, buffers_of(state), state["class_weights"])

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average, then renew the class weights when it is time."""
        server = super().server(problem, server, clients, participants, round_index)
        if not self.due(round_index):
            return server
        return server | {"class_weights": self._weights(problem, server["x"], buffers_of(server))}

    def due(self, round_index: int) -> bool:
        """Return whether the weights are renewed after this round."""
        return True

    def _weights(self, problem: Problem, w: Tensor, buffers: Tensor | None) -> Tensor:
        """Compute the class weights [C] at parameters ``w`` [d] in evaluation mode."""
        if problem.auxiliary is None:
            raise ValueError("the ratio loss needs a problem with an auxiliary set")
        place, shape = problem.net.last_layer()
        statistics = None if buffers is None else buffers[None]
        gradients = []
        for batch in problem.auxiliary(self.n_aux):
            leaf = w[None].detach().requires_grad_()
            scores = problem.net.scores(leaf, batch.inputs, statistics, train=False)
            (gradient,) = torch.autograd.grad(cross_entropy(scores, batch.labels).sum(), leaf)
            part = gradient[0, place].view(shape)
            gradients.append(torch.cat([-part, part]) if shape[0] == 1 else part)
        return class_weights(torch.stack(gradients), self.ratio_alpha, self.ratio_beta)
