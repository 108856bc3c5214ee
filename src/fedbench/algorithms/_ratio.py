"""Ratio loss (Wang et al., AAAI 2021): cross-entropy weighted by class, in place of a base solver's ``loss``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod, one_of
from fedbench.net import Leaf
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.objectives.ratio import class_weights, mean_of_ratios, ratio_of_sums
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import Count, NotNegative, Share
from fedbench.task import LabelledTask, Task

if TYPE_CHECKING:
    Base = FederatedMethod
else:
    Base = object


FORMS = ("climb", "wang")


class RatioLoss(Base):
    """Cross-entropy with class weights ``ratio_alpha + ratio_beta R_c``; the server computes R at the averaged model.

    The first weights are computed at the initial model. The class is mixed in before a base solver.

    Attributes:
        form: ``climb``, as in climb's program (c841a4d, core/ratio_loss_fl.py 19-24, 41-44): R is a mean of ratios over
            the class's own output, and a batch's loss is divided by the sum of its class weights. ``wang``, as in the
            program of Wang et al.: R is a ratio of sums over the network weights whose update the class dominates, and
            a batch's loss is a plain mean. That program takes the updates of local training; here both forms take one
            gradient.
        n_aux: samples of each class in the server's auxiliary set.
        ratio_alpha: constant part of a class weight.
        ratio_beta: factor of the ratio R; 0 with ratio_alpha = 1 gives the base solver.
        ratio_max: upper bound of R.
        ratio_undefined: R of a class whose denominator is zero.
        dominance: with ``wang``: a class owns a network weight if its update is the largest there and every other
            class's update is at most this share of it.
    """

    form: str
    n_aux: Count
    ratio_alpha: NotNegative
    ratio_beta: NotNegative
    ratio_max: NotNegative
    ratio_undefined: NotNegative
    dominance: Share

    task: ClassVar[type[Task]] = LabelledTask
    broadcast: ClassVar[tuple[str, ...]] = ("class_weights",)

    def __post_init__(self) -> None:
        one_of("ratio_loss", "form", self.form, FORMS)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with the class weights at the initial model."""
        statistics = problem.net.initial_buffers().to(w) if problem.net.n_buffers else None
        return super().init(problem, w) | {"class_weights": self._weights(problem, w, statistics)}

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' class-weighted cross-entropy [K]."""
        factors = state["class_weights"]
        if self.form == "wang":
            return problem.cross_entropy(w, batch, buffers_of(state), factors)
        share = factors.gather(1, batch.labels) * (1.0 if batch.weight is None else batch.weight)
        share = share / share.sum(1, keepdim=True).clamp(min=torch.finfo(share.dtype).tiny)
        return problem.cross_entropy(w, batch._replace(weight=share), buffers_of(state))

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average, then compute new class weights if they are due."""
        server = super().server(problem, server, clients, participants, round_index)
        if not self.due(round_index):
            return server
        return server | {"class_weights": self._weights(problem, server["x"], buffers_of(server))}

    def due(self, round_index: int) -> bool:
        """Return whether new class weights are computed after this round."""
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
        stacked = torch.stack(gradients)
        ratios = mean_of_ratios(stacked) if self.form == "climb" else ratio_of_sums(stacked, self.dominance)
        return class_weights(ratios, self.ratio_alpha, self.ratio_beta, self.ratio_max, self.ratio_undefined)
