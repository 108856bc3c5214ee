"""Ratio-Loss: FedAvg on class-weighted cross-entropy (Wang et al., AAAI 2021), a baseline of climb."""

from __future__ import annotations

from dataclasses import dataclass

from fedbench.algorithms import fedavg
from fedbench.algorithms._ratio import RatioLoss
from fedbench.ranges import Count, NotNegative, Share


@dataclass(frozen=True)
class Method(RatioLoss, fedavg.Method):
    """FedAvg on the ratio loss. See :class:`RatioLoss`.

    Attributes:
        renew_every: rounds between two computations of the class weights.
    """

    form: str
    n_aux: Count
    ratio_alpha: NotNegative
    ratio_beta: NotNegative
    ratio_max: NotNegative
    ratio_undefined: NotNegative
    dominance: Share
    renew_every: Count

    def due(self, round_index: int) -> bool:
        """Return whether new class weights are computed after this round."""
        return (round_index + 1) % self.renew_every == 0
