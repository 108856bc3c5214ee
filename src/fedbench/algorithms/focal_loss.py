"""Focal-Loss: FedAvg on the focal loss (Lin et al., ICCV 2017), a baseline of climb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.net import Leaf
from fedbench.objectives.focal import focal
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative
from fedbench.task import LabelledTask, Task


@dataclass(frozen=True)
class Method(fedavg.Method):
    """FedAvg whose clients minimise ``-(1 - p)^gamma log p``, p the probability of the true class; no class weights.

    Attributes:
        gamma: focusing parameter; 0 gives FedAvg.
    """

    gamma: NotNegative

    task: ClassVar[type[Task]] = LabelledTask

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' focal losses [K]."""
        return focal(problem.scores(w, batch, buffers_of(state)), batch.labels, self.gamma, batch.weight)
