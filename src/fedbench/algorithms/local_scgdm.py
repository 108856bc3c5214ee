"""Local-SCGDM (Gao, Li, Huang, ICML 2022): Local-SCGD with momentum, a baseline of fcsg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._scgd import Scgd
from fedbench.problem import Problem, State
from fedbench.ranges import NotNegative, Weight


@dataclass(frozen=True)
class Method(Scgd):
    """``m <- (1 - beta) m + beta G``, ``x <- x - lr m``, with the gradient G at the inner state s of :class:`Scgd`.

    x, s and m are averaged.

    Attributes:
        lr: step size.
        beta: weight of the newest gradient, in (0, 1]; 1 is Local-SCGD.
        beta_in: weight of the newest inner value, in (0, 1].
        state: ``own`` or ``shared``, see :class:`fedbench.algorithms._scgd.Scgd`.
    """

    lr: NotNegative
    beta: Weight
    beta_in: Weight
    state: str

    averaged: ClassVar[tuple[str, ...]] = ("x", "s", "m")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with m = 0; the first step on data sets m to its gradient."""
        return super().init(problem, w) | {"m": torch.zeros_like(w)}

    def moved(self, state: State, gradient: Tensor, decay: float, first: bool = False) -> State:
        """Update the direction m by the gradient, and move along it."""
        m = gradient if first else (1 - self.beta) * state["m"] + self.beta * gradient
        return {"x": torch.add(state["x"], m, alpha=-decay * self.lr), "m": m}
