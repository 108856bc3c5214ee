"""Model-contrastive loss (Li, He and Song, CVPR 2021, equation 3)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedbench.objectives.mean import batch_mean


def model_contrastive(
    z: Tensor, z_global: Tensor, z_previous: Tensor, temperature: float, weight: Tensor | None = None
) -> Tensor:
    """Return each client's mean of ``-log( e^(s_g / t) / (e^(s_g / t) + e^(s_p / t)) )`` over its batch, [K].

    ``s_g`` and ``s_p`` are the cosines between z and z_global and between z and z_previous.

    Args:
        z: representations by the model that is trained, [K, B, F].
        z_global: representations by the model at the beginning of the round, [K, B, F].
        z_previous: representations by the client's own model after its last round, [K, B, F].
        temperature: t, above 0.
        weight: share of each sample in its client's mean [K, B]; ``None`` for equal shares.
    """
    nearer = torch.cosine_similarity(z, z_global, -1) - torch.cosine_similarity(z, z_previous, -1)
    return batch_mean(F.softplus(-nearer / temperature), weight)
