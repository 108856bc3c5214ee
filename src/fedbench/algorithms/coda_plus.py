"""CODA+ (codasca, Algorithm 1): stagewise proximal local SGDA on the min-max AUC loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._minimax import Minimax, MinimaxGradient
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Positive


@dataclass(frozen=True)
class Method(Minimax):
    """With x = (w, a, b) and the stage's anchor x_0, a local step is

        x <- x - lr (grad_x F(x, alpha; z) + (x - x_0) / gamma),      alpha <- alpha + lr_dual grad_alpha F(x, alpha; z)

    and x, alpha are averaged. At the end of a stage (each step-size decay) the anchor moves to x; alpha carries over.
    With one local step a round this is the naive parallel algorithm NPA (Appendix C). If x differs from the anchor in
    the first round of a stage in which a client takes part, the client receives the anchor too. See :class:`Minimax`
    for further hyper-parameters.

    Attributes:
        lr: primal step size.
        lr_dual: dual step size.
        proximal: 1/gamma, weight of the proximal term.
    """

    lr: Positive
    lr_dual: Positive
    proximal: NotNegative

    averaged: ClassVar[tuple[str, ...]] = ("x", "alpha")
    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start at x = (w, 0, 0), with the anchor at the same point."""
        x, alpha = self.start_at(w)
        holders = torch.zeros(problem.n_clients, dtype=torch.bool, device=w.device)
        return {"x": x, "alpha": alpha, "anchor": x, "holders": holders}

    def gradient(self, problem: Problem, state: State, batch: Batch) -> MinimaxGradient:
        """Return the gradients of the stage's subproblem F + |x - x_0|^2 / (2 gamma) on one batch."""
        x = state["x"]
        g = self.minimax_gradient(problem, x, state["alpha"], batch, buffers_of(state))
        if not self.proximal:
            return g
        return g._replace(x=torch.add(g.x, x - state["anchor"], alpha=self.proximal))

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one proximal descent ascent step."""
        g = self.gradient(problem, state, batches[0])
        return self.moved(state, g.x, g.alpha, decay) | {"loss": g.loss}

    def moved(self, state: State, down: Tensor, up: Tensor, decay: float) -> State:
        """Descend along ``down`` [K, d+2] in x and ascend along ``up`` [K] in alpha."""
        return state | {
            "x": torch.add(state["x"], down, alpha=-decay * self.lr),
            "alpha": self.bounded(torch.add(state["alpha"], up, alpha=decay * self.lr_dual)),
        }

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average."""
        return server | self.mean(clients) | self.handed_out(problem, server, participants)

    def handed_out(self, problem: Problem, server: State, participants: list[int]) -> State:
        """Charge the anchor for participants that do not hold it yet, and return the new ``holders``, [N] of bool."""
        holders, anchor = server["holders"], server["anchor"]
        if self.proximal and not torch.equal(server["x"], anchor):
            late = len(participants) - int(holders[participants].sum())
            problem.charges.add(down=late * anchor.numel())
        place = torch.tensor(participants, device=holders.device)
        return {"holders": holders.index_fill(0, place, True)}

    def new_stage(self, problem: Problem, server: State) -> State:
        """Move the anchor to x; no client holds the new anchor yet."""
        return server | {"anchor": server["x"], "holders": torch.zeros_like(server["holders"])}

    def no_path(self, x: Tensor) -> State:
        """Return an empty sum for the average of x [..., d+2] over a stage."""
        return {"path": torch.zeros_like(x), "passed": torch.zeros_like(x[..., 0])}

    def passed(self, state: State, x: Tensor) -> State:
        """Add x [..., d+2] to that sum."""
        return {"path": state["path"] + x, "passed": state["passed"] + 1}
