"""MOON (Li, He and Song, CVPR 2021): representations approach the global model's and leave the last local model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.net import Leaf
from fedbench.objectives.contrastive import model_contrastive
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative, Positive


@dataclass(frozen=True)
class Method(FederatedMethod):
    """FedAvg whose clients minimise ``CE(x_k) + mu l_con(z; z_global, z_previous)`` (Algorithm 1).

    A representation z is the input of the output layer. z_global is computed by the model at the beginning of the round
    and z_previous by the client's model after the last round in which it took part (at first: the initial model), both
    without gradients and with running batch-norm statistics. The paper puts a projection head before the output layer;
    here all methods of a table have the same network.

    Attributes:
        lr: step size.
        mu: weight of the contrastive loss; 0 gives FedAvg.
        temperature: temperature of the contrastive loss, above 0.
    """

    lr: NotNegative
    mu: NotNegative
    temperature: Positive

    own: ClassVar[tuple[str, ...]] = ("previous", "previous_buffers")

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with the initial model as the previous one."""
        statistics = {"previous_buffers": server["buffers"]} if "buffers" in server else {}
        return {"previous": server["x"], **statistics}

    def begin(self, problem: Problem, state: State) -> State:
        """Remember the model at the beginning of the round, and its batch-norm statistics."""
        statistics = {"start_buffers": state["buffers"].clone()} if "buffers" in state else {}
        return state | {"start": state["x"], **statistics}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent on the sum of both losses."""
        batch, x = batches[0], state["x"]
        with torch.no_grad():
            z_global, z_previous = (
                problem.net.features(
                    state[name], batch.inputs, buffers_of(state, f"{name}_buffers"), train=False
                )[1]
                for name in ("start", "previous")
            )

        def loss(w: Leaf) -> Tensor:
            scores, z = problem.net.features(w, batch.inputs, buffers_of(state))
            plain = cross_entropy(scores, batch.labels, batch.weight)
            contrast = model_contrastive(z, z_global, z_previous, self.temperature, batch.weight)
            return plain + self.mu * contrast

        gradient, losses = problem.gradient(loss, x)
        return state | {"x": torch.add(x, gradient, alpha=-decay * self.lr), "loss": losses}

    def end(self, problem: Problem, state: State) -> State:
        """Keep the client's model for its next round."""
        statistics = {"previous_buffers": state["buffers"]} if "buffers" in state else {}
        return state | {"previous": state["x"], **statistics}
