"""LocalSGDM_RL: LocalSGDM on the ratio loss of Wang et al. (AAAI 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from fedbench.algorithms import local_sgdm
from fedbench.algorithms._ratio import RatioLoss


@dataclass(frozen=True)
class Method(RatioLoss, local_sgdm.Method):
    """LocalSGDM on the ratio loss, its weights renewed at each synchronisation. See :class:`RatioLoss`."""

    form: str
    n_aux: int
    ratio_alpha: float
    ratio_beta: float
    ratio_max: float
    ratio_undefined: float
    dominance: float
