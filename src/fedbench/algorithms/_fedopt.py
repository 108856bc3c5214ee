"""The base of FedAdam and FedYogi (Reddi et al., ICLR 2021, Algorithm 2): an adaptive step of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.problem import Problem, State
from fedbench.ranges import Memory, NotNegative, Positive


@dataclass(frozen=True)
class FedOpt(fedavg.Method):
    """Clients make FedAvg's local steps. With D the mean change of the participants' models, the server makes the step

        m <- beta1 m + (1 - beta1) D,      v <- second(v, D^2),      x <- x + server_lr m / (sqrt(v) + tau),

    from m = 0 and v = tau^2, without bias correction. The moments m and v stay on the server.

    Attributes:
        lr: local step size.
        server_lr: step size of the server.
        beta1: decay of the first moment.
        beta2: decay of the second moment.
        tau: degree of adaptivity, above 0.
    """

    server_lr: NotNegative
    beta1: Memory
    beta2: Memory
    tau: Positive

    weighs: ClassVar[bool] = True

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        """Return the new second moment [d]."""
        raise NotImplementedError

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with m = 0 and v = tau^2."""
        return {"x": w, "m": torch.zeros_like(w), "v": torch.full_like(w, self.tau**2)}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Make the adaptive step along the mean change."""
        mean = self.mean(clients)
        change = mean["x"] - server["x"]
        m = torch.lerp(change, server["m"], self.beta1)
        v = self.second(server["v"], change.square())
        x = server["x"] + self.server_lr * m / (v.sqrt() + self.tau)
        return server | mean | {"x": x, "m": m, "v": v}
