"""The base of the min-max AUC methods: the gradient of the loss at x = (w, a, b) and the dual variable alpha."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from fedbench.method import FederatedMethod, one_of
from fedbench.objectives.auc_minimax import auc_minimax
from fedbench.problem import Batch, Problem

SCORES = ("sigmoid", "logit")
DUAL_STEPS = ("batch", "running_means")
A_B = ("free", "decay", "clip")


class MinimaxGradient(NamedTuple):
    """Gradients of F: in x [K, d+2], in alpha [K], and the losses [K]."""

    x: Tensor
    alpha: Tensor
    loss: Tensor


def as_scores(outputs: Tensor, score: str) -> Tensor:
    """Turn outputs [K, B, 1] into scores [K, B]: in (0, 1) with ``sigmoid``, the logits with ``logit``."""
    outputs = outputs.squeeze(-1)
    return outputs.sigmoid() if score == "sigmoid" else outputs


@dataclass(frozen=True, kw_only=True)
class Minimax(FederatedMethod):
    """A method on the min-max loss F(w, a, b, alpha) of :mod:`fedbench.objectives.auc_minimax`.

    Two programs write alpha where F has 1 + alpha: CODASCA's (Optimization-AI/ICML2021_FedDeepAUC_CODASCA 050b00c,
    main_codasca_cifar.py 73, 106-119) and LibAUC (812f98f, libauc/losses/auc.py 215, 261). They start their alpha at 0
    and keep it in [0, 999] after each step (134; libauc/optimizers/pesg.py 344, pdsca.py 256). In F, this is
    ``alpha_start`` = ``alpha_least`` = -1: at first the loss only draws scores to a and b, which start at 0, and the
    coupling of scores and labels grows with alpha. CODA's program (ZhishuaiGuo/DistributedAUC 30f052a,
    imagenet/main.py 126, 315) has F itself and starts alpha at 0.

    Attributes:
        score: the scores of the loss: ``sigmoid`` of the logit, or the ``logit``.
        dual_step: the direction of alpha. ``batch`` is the batch gradient of F (the papers). ``running_means`` is 2 (b
            - a - alpha), the population gradient divided by p(1-p), with a and b in place of the mean scores (the
            programs above: 133; libauc/optimizers/pesg.py 342); it is much better conditioned if positives are rare.
        alpha_start: the first alpha, in [-1, 0].
        alpha_least: lower bound of alpha after each local step and restart; null for no bound.
        a_b: whether weight decay and clipping also apply to a and b; the papers do not say. ``free``: to w alone.
            ``decay``: weight decay to a and b, too (main_codasca_cifar.py 129-130). ``clip``: both to a and b, too
            (LibAUC, libauc/optimizers/pesg.py 274-276).
    """

    score: str
    dual_step: str
    alpha_start: Annotated[float, Field(ge=-1, le=0)] = 0.0
    alpha_least: Annotated[float, Field(ge=-1, le=0)] | None = None
    a_b: str = "free"

    binary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of(self.name, "score", self.score, SCORES)
        one_of(self.name, "dual_step", self.dual_step, DUAL_STEPS)
        one_of(self.name, "a_b", self.a_b, A_B)

    @property
    def name(self) -> str:
        """The method's name, which is the name of its file."""
        return type(self).__module__.rpartition(".")[2]

    def start_at(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Return x = (w, 0, 0) [d+2] and the first alpha, without axes, for weights [d]."""
        return torch.cat([w, w.new_zeros(2)]), w.new_full((), self.alpha_start)

    def bounded(self, alpha: Tensor) -> Tensor:
        """Return alpha, raised to ``alpha_least`` where it is below."""
        return alpha if self.alpha_least is None else alpha.clamp(min=self.alpha_least)

    def minimax_gradient(
        self, problem: Problem, x: Tensor, alpha: Tensor, batch: Batch, buffers: Tensor | None
    ) -> MinimaxGradient:
        """Differentiate F at x [K, d+2] and alpha [K] on one batch; the gradient in x is clipped, with weight decay."""
        d = problem.net.d
        leaf = problem.net.leaf(x[:, :d])
        a, b, dual = (part.detach().requires_grad_() for part in (x[:, d], x[:, d + 1], alpha))
        scores = as_scores(problem.scores(leaf, batch, buffers), self.score)
        losses = auc_minimax(scores, batch.labels, a, b, dual, problem.prior, batch.weight)
        in_w, in_a, in_b, in_alpha = leaf.gradient(losses, a, b, dual)
        if self.dual_step == "running_means":
            in_alpha = 2 * (b - a - dual).detach()
        in_x = self._regularised(problem, in_w, torch.stack([in_a, in_b], 1), x)
        return MinimaxGradient(in_x, in_alpha, losses.detach())

    def _regularised(self, problem: Problem, in_w: Tensor, in_a_b: Tensor, x: Tensor) -> Tensor:
        if self.a_b == "clip":
            return problem.regularised(torch.cat([in_w, in_a_b], 1), x)
        in_w = problem.regularised(in_w, x[:, : problem.net.d])
        if self.a_b == "decay":
            in_a_b = torch.add(in_a_b, x[:, problem.net.d :], alpha=problem.weight_decay)
        return torch.cat([in_w, in_a_b], 1)
