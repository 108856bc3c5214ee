"""Amplified FedAvg (Wang and Ji, NeurIPS 2022): at the end of a window of rounds, the model's change is multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.problem import Problem, State
from fedbench.ranges import Amplification, Positive


@dataclass(frozen=True)
class Method(fedavg.Method):
    """Rounds as in FedAvg. A window is a cycle; after its last round, with x_0 the model at its beginning,

        x <- x_0 + kappa (x - x_0).

    Batch-norm statistics are not amplified: a variance could become negative.

    Attributes:
        kappa: factor of a cycle's change, 1 or more; 1 is FedAvg.
    """

    lr: Positive
    kappa: Amplification

    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Remember the model at the beginning of the first cycle."""
        return {"x": w, "start": w}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average; at the end of a cycle amplify."""
        return amplified(problem, server | self.mean(clients), self.kappa)


def amplified(problem: Problem, server: State, kappa: float) -> State:
    """Amplify x at the end of a cycle, and remember it for the next cycle; with ``kappa`` 1 it is exactly x."""
    if not problem.cycle.ends:
        return server
    x = torch.lerp(server["start"], server["x"], kappa)
    return server | {"x": x, "start": x}
