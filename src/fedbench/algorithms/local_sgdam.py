"""LocalSGDAM: momentum local stochastic gradient descent ascent (Sharma et al., ICML 2022) on the min-max AUC loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._minimax import Minimax
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Share


@dataclass(frozen=True)
class Method(Minimax):
    """With x = (w, a, b), a local step is

        x <- x - lr u,                      alpha <- alpha + lr_dual v                  (old momenta)
        u <- (1-beta_x) u + beta_x grad_x F(x, alpha; zeta),   v <- (1-beta_y) v + beta_y grad_alpha F(x, alpha; zeta)

    and x, alpha, u, v are averaged. On each client, u and v start as its gradients at the initial point.
    See :class:`Minimax` for further hyper-parameters.

    Attributes:
        lr: primal step size (the papers' gamma_x eta).
        lr_dual: dual step size (gamma_y eta).
        beta_x: weight of the new primal gradient in (0, 1].
        beta_y: weight of the new dual gradient in (0, 1].
    """

    lr: NotNegative
    lr_dual: NotNegative
    beta_x: Share
    beta_y: Share

    averaged: ClassVar[tuple[str, ...]] = ("x", "alpha", "u", "v")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start at a = b = 0."""
        x, alpha = self.start_at(w)
        return {"x": x, "alpha": alpha, "u": torch.zeros_like(x), "v": w.new_zeros(())}

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Set the momenta to the gradients at the initial point."""
        g = self.minimax_gradient(problem, state["x"], state["alpha"], batches[0], None)
        return state | {"u": g.x, "v": g.alpha}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of momentum descent ascent."""
        x = torch.add(state["x"], state["u"], alpha=-decay * self.lr)
        alpha = self.bounded(torch.add(state["alpha"], state["v"], alpha=decay * self.lr_dual))
        g = self.minimax_gradient(problem, x, alpha, batches[0], buffers_of(state))
        u = torch.lerp(state["u"], g.x, self.beta_x)
        v = torch.lerp(state["v"], g.alpha, self.beta_y)
        return state | {"x": x, "alpha": alpha, "u": u, "v": v, "loss": g.loss}
