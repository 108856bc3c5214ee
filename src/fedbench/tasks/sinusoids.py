"""Few-shot regression of sine curves by model-agnostic meta-learning (Finn et al., ICML 2017): MAML in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.data.datasets._generated import PHASES
from fedbench.errors import UserError
from fedbench.net import Net
from fedbench.tasks._maml import Maml


@dataclass(frozen=True)
class Task(Maml):
    """Squared error on episodes of one curve. See :class:`Maml`.

    A sample of the dataset 'sinusoids' is a point x with the target amplitude sin(x + phase pi / 5); its class is the
    number of its curve, ``(amplitude - 1) PHASES + phase - 1``.
    """

    name: ClassVar[str] = "sinusoids"
    measures: ClassVar[tuple[str, ...]] = ("loss",)

    def outputs(self, arrays: Arrays) -> int:
        """Return one output, the value of the curve."""
        return 1

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse data other than the dataset 'sinusoids'."""
        super().check(data, arrays, net)
        if data.inputs.shape[1:] != (1,):
            raise UserError("task 'sinusoids' takes the points of the dataset 'sinusoids'")

    def targets(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Return the values of the curves."""
        amplitude, phase = labels // PHASES + 1, labels % PHASES + 1
        return amplitude * torch.sin(inputs[..., 0] + phase * (math.pi / PHASES))

    def losses(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return each episode's mean squared error."""
        return (scores[..., 0] - targets).square().mean(1)

    def results(self, scores: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return each episode's squared error on its query points."""
        return {"loss": self.losses(scores, targets)}
