"""CODA (Guo et al., ICML 2020; "CoDA" in localscgdam): stagewise proximal local SGDA on the min-max AUC loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._base import FederatedMethod, one_of
from fedbench.algorithms._minimax import DUAL_STEPS, SCORES, as_scores, minimax_gradient, start_at
from fedbench.engine.problem import Batch, Problem, State, buffers_of


@dataclass(frozen=True)
class Method(FederatedMethod):
    """With x = (w, a, b) and the stage's anchor x_0, a local step is

        x <- x - lr (grad_x F(x, alpha; z) + (x - x_0) / gamma),      alpha <- alpha + lr_dual grad_alpha F(x, alpha; z)

    and x, alpha are averaged. At a stage's end (each step-size decay) the anchor moves to x, and alpha restarts as mean
    score of negatives minus mean score of positives on one larger batch per client, sums and counts pooled.

    Attributes:
        lr: primal step size.
        lr_dual: dual step size.
        proximal: 1/gamma, weight of the proximal term.
        restart_samples: samples of each client in the dual restart; 0 leaves alpha as it is (CODA+).
        score: ``sigmoid`` or ``logit``.
        dual_step: ``batch`` or ``running_means``.
    """

    lr: float
    lr_dual: float
    proximal: float
    restart_samples: int
    score: str
    dual_step: str

    averaged: ClassVar[tuple[str, ...]] = ("x", "alpha")

    def __post_init__(self) -> None:
        one_of("coda", "score", self.score, SCORES)
        one_of("coda", "dual_step", self.dual_step, DUAL_STEPS)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start at a = b = alpha = 0, the anchor there too."""
        x = start_at(w)
        return {"x": x, "alpha": w.new_zeros(()), "anchor": x}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one proximal descent ascent step."""
        x, alpha = state["x"], state["alpha"]
        g = minimax_gradient(problem, x, alpha, batches[0], buffers_of(state), self.score, self.dual_step)
        direction = torch.add(g.x, x - state["anchor"], alpha=self.proximal) if self.proximal else g.x
        return state | {
            "x": torch.add(x, direction, alpha=-decay * self.lr),
            "alpha": torch.add(alpha, g.alpha, alpha=decay * self.lr_dual),
            "loss": g.loss,
        }

    def new_stage(self, problem: Problem, server: State) -> State:
        """Move the anchor and restart alpha."""
        server = server | {"anchor": server["x"]}
        if not self.restart_samples or problem.draw is None:
            return server
        sums, counts = server["x"].new_zeros(2), server["x"].new_zeros(2)
        w = server["x"][None, : problem.net.d]
        statistics = None if "buffers" not in server else server["buffers"][None]
        for client in range(problem.n_clients):
            batch = problem.draw(client, self.restart_samples)
            with torch.no_grad():
                scores = as_scores(problem.net.scores(w, batch.inputs, statistics, train=False), self.score)
            for label in (0, 1):
                mine = scores[batch.labels == label]
                sums[label] += mine.sum()
                counts[label] += len(mine)
        problem.charges.add(up=4 * problem.n_clients, down=problem.n_clients)
        if not counts.all():
            return server  # nobody drew a sample of one class: the means are undefined
        means = sums / counts
        return server | {"alpha": means[0] - means[1]}
