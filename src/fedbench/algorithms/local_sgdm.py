"""LocalSGDM: local SGD with averaged momentum (Yu, Jin, Yang, ICML 2019) on cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._base import FederatedMethod
from fedbench.engine.problem import Batch, Problem, State, buffers_of
from fedbench.net import Leaf


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``m <- momentum m + grad CE(x)``, ``x <- x - lr m``; both x and m are averaged.

    Attributes:
        lr: step size.
        momentum: heavy-ball momentum in [0, 1).
    """

    lr: float
    momentum: float

    averaged: ClassVar[tuple[str, ...]] = ("x", "m")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with zero momentum."""
        return {"x": w, "m": torch.zeros_like(w)}

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' losses [K] at parameters ``w``."""
        return problem.cross_entropy(w, batch, buffers_of(state))

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of momentum SGD."""
        gradient, loss = problem.gradient(lambda w: self.loss(problem, state, w, batches[0]), state["x"])
        m = torch.add(gradient, state["m"], alpha=self.momentum)
        return state | {"x": torch.add(state["x"], m, alpha=-decay * self.lr), "m": m, "loss": loss}
