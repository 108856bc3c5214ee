"""Amplified FedAvg (Wang and Ji, NeurIPS 2022): what a window of rounds has moved is multiplied at its end."""

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
    """Rounds as in FedAvg. After the last round of a cycle, with x_0 the model it began with,

        x <- x_0 + kappa (x - x_0).

    Running statistics are not amplified: a variance could become negative.

    Attributes:
        kappa: how much a cycle's movement is amplified, 1 or more; 1 is FedAvg.
    """

    lr: Positive
    kappa: Amplification

    weighs: ClassVar[bool] = True

    def init(self, problem: Problem, w: Tensor) -> State:
        """Remember where the first window begins."""
        return {"x": w, "start": w}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average; at the end of a cycle amplify."""
        return amplified(problem, server | self.mean(clients), self.kappa)


def amplified(problem: Problem, server: State, kappa: float) -> State:
    """Amplify x at the end of a cycle, where the next window starts; exactly x with ``kappa`` 1."""
    if not problem.cycle.ends:
        return server
    x = torch.lerp(server["start"], server["x"], kappa)
    return server | {"x": x, "start": x}
