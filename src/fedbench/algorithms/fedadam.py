"""FedAdam (Reddi et al., ICLR 2021): the server steps as Adam does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedbench.algorithms._fedopt import FedOpt


@dataclass(frozen=True)
class Method(FedOpt):
    """Second moment ``v <- beta2 v + (1 - beta2) D^2``; the rest is in :class:`FedOpt`."""

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        """Average exponentially."""
        return torch.lerp(squared, v, self.beta2)
