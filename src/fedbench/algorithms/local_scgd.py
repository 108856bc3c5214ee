"""Local-SCGD (Gao, Li, Huang, ICML 2022): stochastic compositional gradient descent, a baseline of fcsg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms._scgd import Scgd
from fedbench.problem import State
from fedbench.ranges import NotNegative, Weight


@dataclass(frozen=True)
class Method(Scgd):
    """``x <- x - lr G``, with the gradient G at the inner state s of :class:`Scgd`; x and s are averaged.

    Attributes:
        lr: step size.
        beta_in: weight of the newest inner value, in (0, 1].
        state: ``own`` or ``shared``, see :class:`fedbench.algorithms._scgd.Scgd`.
    """

    lr: NotNegative
    beta_in: Weight
    state: str

    averaged: ClassVar[tuple[str, ...]] = ("x", "s")

    def moved(self, state: State, gradient: Tensor, decay: float, first: bool = False) -> State:
        """Make a step against the gradient."""
        return {"x": torch.add(state["x"], gradient, alpha=-decay * self.lr)}
