"""LocalSCGDAM: local stochastic compositional gradient descent ascent with momentum (Zhang et al., NeurIPS 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import local_sgdam
from fedbench.algorithms._minimax import MinimaxGradient
from fedbench.method import one_of
from fedbench.objectives.auc_compositional import HVP, InnerStep
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Share


@dataclass(frozen=True)
class Method(local_sgdam.Method):
    """localscgdam, Algorithm 1, eqs. (11)-(14). With g(x) = (w - rho grad CE(w), a, b), a local step is

        x <- x - lr u,      alpha <- alpha + lr_dual v                                 (13)
        h <- (1-alpha_h) h + alpha_h g(x; xi)                                          (11)
        u <- (1-beta_x) u + beta_x grad g(x; xi)^T grad_z f(h, alpha; zeta)            (12)
        v <- (1-beta_y) v + beta_y grad_alpha f(h, alpha; zeta)                        (12)

    with independent batches zeta and xi; x, alpha, u, v and h are averaged (14). Metrics of the adapted model h carry
    the suffix ``_h``. rho = 0 with alpha_h = 1 is LocalSGDAM.

    Attributes:
        alpha_h: weight of the new inner value in (0, 1] (the paper's alpha eta).
        rho: step size of the inner gradient step.
        hvp: product of the Hessian of CE and a vector: ``exact``, ``first_order`` (the Hessian is dropped) or
            ``finite_difference``, which needs a smooth network: a kink between its two points would count as a huge
            curvature.
    """

    alpha_h: Share
    rho: NotNegative
    hvp: str

    averaged: ClassVar[tuple[str, ...]] = ("x", "alpha", "u", "v", "h")
    running: ClassVar[tuple[str, ...]] = ("buffers", "buffers_h")
    batches: ClassVar[int] = 2  # zeta, xi

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("local_scgdam", "hvp", self.hvp, HVP)

    def needs_smooth(self) -> str:
        """Name ``hvp: finite_difference``, since differences of gradients need a smooth network."""
        return "hvp: finite_difference" if self.hvp == "finite_difference" else ""

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with h = x; the first client step replaces it by g(x)."""
        server = super().init(problem, w)
        return server | {"h": server["x"]}

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Start each client with h = g(x) and with the gradients there as u and v."""
        still = {name: tensor for name, tensor in state.items() if name not in self.running}
        h, g = self._compositional(problem, still, state["x"], state["alpha"], batches, 1.0)
        return state | {"h": h, "u": g.x, "v": g.alpha}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of compositional momentum descent ascent."""
        x = torch.add(state["x"], state["u"], alpha=-decay * self.lr)
        alpha = self.bounded(torch.add(state["alpha"], state["v"], alpha=decay * self.lr_dual))
        h, g = self._compositional(problem, state, x, alpha, batches, self.alpha_h)
        u = torch.lerp(state["u"], g.x, self.beta_x)
        v = torch.lerp(state["v"], g.alpha, self.beta_y)
        return state | {"x": x, "alpha": alpha, "u": u, "v": v, "h": h, "loss": g.loss}

    def _compositional(
        self, problem: Problem, state: State, x: Tensor, alpha: Tensor, batches: list[Batch], alpha_h: float
    ) -> tuple[Tensor, MinimaxGradient]:
        """Return the new h and the compositional gradient at x: one pass at w on xi, then one at h on zeta."""
        d, (zeta, xi) = problem.net.d, batches
        inner = InnerStep(
            problem.net,
            lambda w: problem.cross_entropy(w, xi, buffers_of(state)),
            x[:, :d],
            self.rho,
            self.hvp,
            probe=lambda w: problem.cross_entropy(w, xi, None),
        )
        h = torch.lerp(state["h"], torch.cat([inner.adapted, x[:, d:]], 1), alpha_h)
        q = self.minimax_gradient(problem, h, alpha, zeta, buffers_of(state, "buffers_h"))
        in_x = torch.cat([inner.jacobian_transposed(q.x[:, :d]), q.x[:, d:]], 1)
        return h, MinimaxGradient(in_x, q.alpha, q.loss)

    def points(self, server: State) -> dict[str, tuple[Tensor, Tensor | None]]:
        """Evaluate x and the adapted model h."""
        return {"": (server["x"], server.get("buffers")), "_h": (server["h"], server.get("buffers_h"))}
