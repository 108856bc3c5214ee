"""LocalSGDM_RL: LocalSGDM on the ratio loss of Wang et al. (AAAI 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from fedbench.algorithms import local_sgdm
from fedbench.algorithms._ratio import RatioLoss
from fedbench.ranges import Count, NotNegative, Share


@dataclass(frozen=True)
class Method(RatioLoss, local_sgdm.Method):
    """LocalSGDM on the ratio loss, with new class weights at each synchronisation. See :class:`RatioLoss`."""

    form: str
    n_aux: Count
    ratio_alpha: NotNegative
    ratio_beta: NotNegative
    ratio_max: NotNegative
    ratio_undefined: NotNegative
    dominance: Share
