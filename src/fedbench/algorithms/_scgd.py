"""The base of Local-SCGD and Local-SCGDM: a running estimate of the inner value."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod, one_of
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Weight
from fedbench.task import ConditionalTask, Task

STATES = ("own", "shared")


class Scgd(FederatedMethod):
    """Compositional steps with an inner state s [p], which the server averages together with x:

        u_i <- (1 - beta_in) s + beta_in g_i(x),      s <- mean_i u_i,      G = mean_i grad g_i(x)^T grad f_i(u_i)

    g_i is the mean over the inner samples of outer sample i. The methods were made for an inner value that does not
    depend on the outer sample. If it does depend (``state``), ``own`` mixes each outer sample's inner value into s and
    evaluates f_i at the result u_i; ``shared`` evaluates every f_i at the new s. beta_in = 1 with ``own`` is the
    plug-in gradient of FCSG. A batch without outer samples, as of a client without positives, leaves s unchanged. The
    first step is made on B samples. A subclass says how G becomes a direction.

    Attributes:
        lr: step size.
        beta_in: weight of the newest inner value, in (0, 1].
        state: the point of f_i: ``own`` (u_i) or ``shared`` (the new s).
    """

    lr: NotNegative
    beta_in: Weight
    state: str

    task: ClassVar[type[Task]] = ConditionalTask

    def __post_init__(self) -> None:
        one_of("local_scgd", "state", self.state, STATES)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with s = 0; :meth:`init_from_data` computes the first inner value."""
        return {"x": w, "s": w.new_zeros(self._task(problem).inner_size(problem.net))}

    def compositional(
        self, problem: Problem, state: State, x: Tensor, batch: Any, beta_in: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradient at ``x`` [K, d], the new state s [K, p] and the losses [K]."""
        task, net, buffers = self._task(problem), problem.net, buffers_of(state)
        new, share = state["s"], batch.outer.weight

        def loss(w: Any) -> Tensor:
            nonlocal new
            value = task.inner(net, w, batch, buffers)  # [K, b, p]
            mixed = (1 - beta_in) * state["s"][:, None] + beta_in * value.detach()
            new = mixed.mean(1)
            if share is not None:
                new = torch.where(share.any(1, keepdim=True), (share[..., None] * mixed).sum(1), state["s"])
            at = mixed if self.state == "own" else new[:, None].expand_as(mixed)
            # the value of the state, the gradient of g
            return task.outer(net, value + (at - value).detach(), batch, buffers) + task.penalty(net, w)

        gradient, losses = problem.gradient(loss, x)
        return gradient, new, losses

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Make a step on the first samples, whose inner value becomes s."""
        gradient, s, _ = self.compositional(problem, state, state["x"], batches[0], 1.0)
        return state | self.moved(state, gradient, 1.0, first=True) | {"s": s}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Update s, compute the gradient there, and move."""
        gradient, s, loss = self.compositional(problem, state, state["x"], batches[0], self.beta_in)
        return state | self.moved(state, gradient, decay) | {"s": s, "loss": loss}

    def moved(self, state: State, gradient: Tensor, decay: float, first: bool = False) -> State:
        """Return the new x [K, d], and the new direction if the method has one, given a gradient [K, d]."""
        raise NotImplementedError

    def _task(self, problem: Problem) -> ConditionalTask:
        assert isinstance(problem.task, ConditionalTask)
        return problem.task
