"""Cross-entropy on one logit (binary) or C logits, optionally weighted by class."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from fedbench.net import Leaf, Net
from fedbench.objectives.mean import batch_mean


def per_sample(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of every sample.

    Args:
        scores: logits [K, B, C]; C = 1 is the binary case, where the logit belongs to class 1.
        labels: classes [K, B].

    Returns:
        Losses in nats, [K, B].
    """
    if scores.shape[-1] == 1:
        return F.binary_cross_entropy_with_logits(
            scores.squeeze(-1), labels.to(scores.dtype), reduction="none"
        )
    return F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)


def cross_entropy(
    scores: Tensor, labels: Tensor, weight: Tensor | None = None, class_weights: Tensor | None = None
) -> Tensor:
    """Return each client's mean cross-entropy, [K].

    Args:
        scores: logits [K, B, C].
        labels: classes [K, B].
        weight: share of each sample in its client's mean [K, B]; ``None`` for equal shares.
        class_weights: factor of each class [K, C] (two classes for one logit). The factors multiply the losses and do
            not enter the divisor, as in Wang et al. (AAAI 2021); in a batch of one class, a divisor with the factors
            would cancel them.
    """
    if len(scores) == 1 and scores.shape[-1] > 1 and weight is None and class_weights is None:
        # one call for speed; indexing instead of squeezing would copy in the backward pass
        return F.cross_entropy(scores.squeeze(0), labels.squeeze(0)).unsqueeze(0)
    losses = per_sample(scores, labels)
    if class_weights is not None:
        losses = losses * class_weights.gather(1, labels)
    return batch_mean(losses, weight)


def of_network(
    net: Net, w: Tensor | Leaf, inputs: Tensor, labels: Tensor, weight: Tensor | None, buffers: Tensor | None
) -> Tensor:
    """Return each client's mean cross-entropy of a network's scores for ``inputs`` [K, B, ...], [K]."""
    if isinstance(w, Leaf) and not w.stacked and weight is None:
        # the common case; on a small network each further operation takes one percent of a step
        scores = net.scores_of_one(w, inputs, buffers)
        if scores.shape[1] > 1:
            return F.cross_entropy(scores, labels[0]).unsqueeze(0)
        return batch_mean(per_sample(scores.unsqueeze(0), labels), None)
    return cross_entropy(net.scores(w, inputs, buffers), labels, weight)
