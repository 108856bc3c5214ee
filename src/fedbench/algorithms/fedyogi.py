"""FedYogi (Reddi et al., ICLR 2021): the server makes a step of Yogi."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedbench.algorithms._fedopt import FedOpt


@dataclass(frozen=True)
class Method(FedOpt):
    """The second moment is ``v <- v - (1 - beta2) D^2 sign(v - D^2)``; the rest is in :class:`FedOpt`."""

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        """Move v towards D^2 by (1 - beta2) D^2, whatever their distance."""
        return v - (1 - self.beta2) * squared * torch.sign(v - squared)
