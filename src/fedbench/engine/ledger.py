"""Counts the costs of a run: floats sent, per client and direction, and samples drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from fedbench.method import FederatedMethod
from fedbench.problem import Charges


@dataclass
class Ledger:
    """The costs so far: floats per client (totals divided by the number of clients), samples of all clients.

    Attributes:
        up: floats sent to the server.
        down: floats received from it.
        buffers: batch-norm statistics sent to the server (as many come back).
        samples: drawn for steps, counted at each draw; inner samples and the first batch of a method count too.
        forward: further samples that are only scored, without a gradient.
    """

    up: float = 0.0
    down: float = 0.0
    buffers: float = 0.0
    samples: int = 0
    forward: int = 0

    @property
    def costs(self) -> dict[str, float]:
        """What was spent, by the columns of the curve."""
        return {
            "samples": self.samples,
            "samples_forward": self.forward,
            "floats_up": self.up,
            "floats_down": self.down,
            "floats_buffers": self.buffers,
        }

    def add_round(
        self,
        method: FederatedMethod,
        server: Mapping[str, Tensor],
        clients: Mapping[str, Tensor],
        n_clients: int,
    ) -> None:
        """Count one round: ``server`` as it was sent, ``clients`` [K, ...] as they came back, joined if gathered."""
        count = len(clients[method.averaged[0]])
        share = count / n_clients
        self.up += share * sum(clients[name][0].numel() for name in (*method.averaged, *method.uploaded))
        self.up += sum(clients[name].numel() for name in method.gathered) / n_clients
        self.down += share * sum(server[name].numel() for name in (*method.averaged, *method.broadcast))
        self.buffers += share * sum(clients[name][0].numel() for name in method.running if name in clients)

    def add_charges(self, charges: Charges, n_clients: int) -> None:
        """Count and clear what a method charged besides its averaged tensors."""
        self.up += charges.up / n_clients
        self.down += charges.down / n_clients
        self.forward += charges.forward
        charges.up = charges.down = charges.forward = 0
