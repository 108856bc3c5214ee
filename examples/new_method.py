"""A method to copy (authors, venue year), on the loss of any task: say in one sentence what it does.

    cp examples/new_method.py src/fedbench/algorithms/my_method.py

In a study: `methods: {MyMethod: {algorithm: my_method, params: {lr: 0.1, momentum: 0.8}}}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Write the paper's equations here, with their numbers. As it stands, every client descends with momentum:

        u <- momentum u + grad F(x),      x <- x - lr u,      and the server averages x and u.

    Attributes:
        lr: step size.
        momentum: share of the old direction that is kept.
    """

    # The hyper-parameters. Their values stand in the configuration, all of them: a field has no default.
    lr: float
    momentum: float

    # `problem.loss` is the loss of whatever task is configured: cross-entropy, unless a task is named.
    task: ClassVar[type[Task]] = Task

    # What clients send after a round, what is averaged and sent back. What a client keeps to itself between rounds,
    # such as a control variate, is named in `own`; what goes only down or only up in `broadcast` and `uploaded`.
    averaged: ClassVar[tuple[str, ...]] = ("x", "u")

    def init(self, problem: Problem, w: Tensor) -> State:
        """Return the server's state before the first round; ``w`` [d] are the network's initial parameters."""
        return {"x": w, "u": torch.zeros_like(w)}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one local step of K clients at once: every tensor of ``state`` is [K, ...].

        Return new tensors and leave the old ones as they are. ``decay`` is the schedule's factor of every step size;
        ``loss`` [K] goes to the training curve.
        """
        gradient, loss = problem.gradient(
            lambda w: problem.loss(w, batches[0], buffers_of(state)), state["x"]
        )
        u = self.momentum * state["u"] + gradient
        return state | {"x": state["x"] - decay * self.lr * u, "u": u, "loss": loss}

    # What else can be said, each with a default (FederatedMethod has them all):
    #   begin, end   at the start and the end of a client's round: remember the round's first model, renew a variate
    #   server       what the server makes of the participants' states; the default takes means of what is averaged
    #   new_stage    when the step size drops
    #   points       which models are evaluated, when it is not x or not x alone
