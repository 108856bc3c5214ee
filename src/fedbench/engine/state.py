"""The state of a run between rounds: the server's tensors, the clients' own tensors, the number of rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch

from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.problem import Problem, State


@dataclass
class RunState:
    """The state that later rounds depend on.

    Attributes:
        server: the server's tensors, without client axis.
        own: tensors that each client keeps for itself between rounds, [N, ...] each.
        round: how many rounds are done.
    """

    server: State
    own: State
    round: int = 0

    @classmethod
    def initial(cls, method: FederatedMethod, problem: Problem, device: torch.device) -> Self:
        """Return the state before the first round; :class:`UserError` unless ``init_own`` returns what ``own`` names.

        Batch-norm statistics may be missing where the network has none.
        """
        net = problem.net
        server = method.init(problem, net.initial().to(device))
        if net.n_buffers:
            server |= {name: net.initial_buffers().to(device) for name in method.running}
        start = method.init_own(problem, server)
        wanted = [name for name in method.own if net.n_buffers or not name.endswith("buffers")]
        if lacking := [name for name in wanted if name not in start]:
            raise UserError(
                f"{type(method).__module__}: init_own has to return {lacking[0]!r}, as own names it"
            )
        if extra := start.keys() - {*method.own}:
            raise UserError(
                f"{type(method).__module__}: own has to name {min(extra)!r}, as init_own returns it"
            )
        per_client = {
            name: tensor[None].expand(problem.n_clients, *tensor.shape).clone()
            for name, tensor in start.items()
        }
        return cls(server, per_client)

    def dump(self) -> dict[str, Any]:
        """Return this state as a checkpoint holds it."""
        return {"server": self.server, "own": self.own, "round": self.round}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over the state of a checkpoint."""
        self.server, self.own, self.round = dumped["server"], dumped["own"], dumped["round"]
