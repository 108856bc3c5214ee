"""LocalSGDM: local SGD with averaged momentum (Yu, Jin, Yang, ICML 2019) on any task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.net import Leaf
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import Memory, NotNegative
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps ``m <- momentum m + grad F(x)``, ``x <- x - lr m``; both x and m are averaged.

    Attributes:
        lr: step size.
        momentum: heavy-ball momentum in [0, 1).
    """

    lr: NotNegative
    momentum: Memory

    task: ClassVar[type[Task]] = Task
    averaged: ClassVar[tuple[str, ...]] = ("x", "m")
    overwrites: ClassVar[tuple[str, ...]] = ("x", "m")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with zero momentum."""
        return {"x": w, "m": torch.zeros_like(w)}

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' losses [K] at parameters ``w``."""
        return problem.loss(w, batch, buffers_of(state))

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of momentum SGD."""
        loss, x, m = problem.descend(
            lambda w: self.loss(problem, state, w, batches[0]),
            state["x"], decay * self.lr, state["m"], self.momentum,
        )  # fmt: skip
        return state | {"x": x, "m": m, "loss": loss}
