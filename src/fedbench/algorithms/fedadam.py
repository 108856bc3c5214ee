"""FedAdam (Reddi et al., ICLR 2021): the server makes a step of Adam."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedbench.algorithms._fedopt import FedOpt


@dataclass(frozen=True)
class Method(FedOpt):
    """The second moment is ``v <- beta2 v + (1 - beta2) D^2``; the rest is in :class:`FedOpt`."""

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        """Return the exponential average of the squared changes."""
        return torch.lerp(squared, v, self.beta2)
