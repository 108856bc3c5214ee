"""Acc-FCSG-M (Wu, Sun, Hu, Li, Zhang, Huang, NeurIPS 2023), Algorithm 2: momentum with variance reduction (STORM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from fedbench.algorithms._pending import Pending
from fedbench.method import one_of
from fedbench.problem import Batch, Problem, State
from fedbench.ranges import NotNegative, Weight

ANCHORS = ("local", "averaged")


@dataclass(frozen=True)
class Method(Pending):
    """``u_{t+1} <- G(x_t) + (1 - beta) (u_t - G(x_{t-1}))``, both gradients on the same samples; beta = 1 is FCSG.

    After a synchronisation, x_t comes from the mean of the clients' models. As published, x_{t-1} is then the client's
    own model before the mean, so that the correction G(x_t) - G(x_{t-1}) contains the client's whole drift. With
    ``averaged``, x_{t-1} is the mean, so that the two points are one step apart, as in all other steps.

    Attributes:
        lr: step size.
        beta: weight of the newest gradient, in (0, 1].
        anchor: x_{t-1} after a synchronisation: ``local``, as published, or ``averaged``.
    """

    lr: NotNegative
    beta: Weight
    anchor: str

    own: ClassVar[tuple[str, ...]] = ("x_old",)
    partial: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of("acc_fcsg_m", "anchor", self.anchor, ANCHORS)

    def init_own(self, problem: Problem, server: State) -> State:
        """Remember the initial model."""
        return {"x_old": server["x"]}

    def begin(self, problem: Problem, state: State) -> State:
        """Set x_{t-1} of the first step to the mean, unless the client's own is kept."""
        return state | {"x_old": state["x"]} if self.anchor == "averaged" else state

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Move, then compute the next direction; x_t becomes the next step's x_{t-1}."""
        new = super().step(problem, state, batches, decay)
        return new | {"x_old": new["x"]}

    def renewed(self, problem: Problem, state: State, gradient: Tensor, batch: Any) -> Tensor:
        """Correct the direction by the change of the gradient on these samples."""
        old, _ = self.gradient(problem, {}, state["x_old"], batch)  # leaves batch-norm statistics alone
        return gradient + (1 - self.beta) * (state["u"] - old)
