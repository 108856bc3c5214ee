"""Model-contrastive loss (Li, He and Song, CVPR 2021, equation 3)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedbench.objectives.mean import batch_mean


def model_contrastive(
    z: Tensor, z_global: Tensor, z_previous: Tensor, temperature: float, weight: Tensor | None = None
) -> Tensor:
    """Return ``-log( e^(s_g / t) / (e^(s_g / t) + e^(s_p / t)) )``, each client's mean over its batch, [K].

    ``s_g`` and ``s_p`` are the cosines between a sample's representation and those of the other two models.

    Args:
        z: representations of the model that is trained, [K, B, F].
        z_global: those of the model the round began with.
        z_previous: those of the client's own model after its last round.
        temperature: t, above 0.
        weight: share of each sample in its client's mean [K, B]; ``None`` for equal shares.
    """
    nearer = torch.cosine_similarity(z, z_global, -1) - torch.cosine_similarity(z, z_previous, -1)
    return batch_mean(F.softplus(-nearer / temperature), weight)
