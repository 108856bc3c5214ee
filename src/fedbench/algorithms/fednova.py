"""FedNova (Wang et al., NeurIPS 2020) on any task: a client with more local steps does not weigh more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedbench.algorithms import fedavg
from fedbench.method import average
from fedbench.problem import Batch, Problem, State


@dataclass(frozen=True)
class Method(fedavg.Method):
    """Client i makes tau_i of FedAvg's local steps; the server divides each client's change by its number of steps:

        x <- x - mean(tau) mean_i( (x - x_i) / tau_i ).

    This is equation (7) of the paper for plain gradient descent, with weights p_i as ``train.weights`` says. If all
    clients make equally many steps, it is FedAvg.

    Attributes:
        lr: local step size.
    """

    uploaded: ClassVar[tuple[str, ...]] = ("steps",)
    weighs: ClassVar[bool] = True

    def begin(self, problem: Problem, state: State) -> State:
        """Count the client's steps from 0."""
        return state | {"steps": state["x"].new_zeros(len(state["x"]))}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step of stochastic gradient descent and count it."""
        return super().step(problem, state, batches, decay) | {"steps": state["steps"] + 1}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average the normalised changes."""
        steps = clients["steps"]
        direction = average(clients, (server["x"] - clients["x"]) / steps[:, None])
        return server | self.mean(clients) | {"x": server["x"] - average(clients, steps) * direction}
