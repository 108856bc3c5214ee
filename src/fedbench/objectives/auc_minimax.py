"""The square surrogate of the AUC as a min-max problem (Ying et al., NeurIPS 2016).

localscgdam eq. (1), codasca eq. (2), cycp eq. (3). With prior p = P(y = 1) and score s,

    F(w, a, b, alpha) = (1-p) (s-a)^2 [y=1] + p (s-b)^2 [y=0]
                        + 2 (1+alpha) (p s [y=0] - (1-p) s [y=1]) - p (1-p) alpha^2,

minimised over (w, a, b) and maximised over alpha. For fixed w the saddle is a = E[s|1], b = E[s|0],
alpha = b - a, and its value plus p(1-p) is p(1-p) E[(1 - s+ + s-)^2]. This holds only if p is the share of positives
in the expectation; with another p, a constant score can be optimal. If clients weigh equally, p is therefore the mean
of their shares.
"""

from __future__ import annotations

from torch import Tensor

from fedbench.objectives.mean import batch_mean


def auc_minimax(
    scores: Tensor,
    labels: Tensor,
    a: Tensor,
    b: Tensor,
    alpha: Tensor,
    prior: float,
    weight: Tensor | None = None,
) -> Tensor:
    """Return each client's F, [K].

    Args:
        scores: scores after the score function, [K, B].
        labels: 1 for positives, 0 for negatives, [K, B].
        a: variable that estimates the mean score of positives, [K].
        b: variable that estimates the mean score of negatives, [K].
        alpha: dual variable, [K].
        prior: the share p of positives in the training data, in (0, 1); a constant, not the share in the batch.
        weight: share of each sample in the mean [K, B]; ``None`` for equal shares.
    """
    positive = labels.to(scores.dtype)
    negative = 1 - positive
    signed = prior * negative - (1 - prior) * positive
    squares = (1 - prior) * positive * (scores - a[:, None]) ** 2 + prior * negative * (
        scores - b[:, None]
    ) ** 2
    coupling = 2 * (1 + alpha[:, None]) * signed * scores
    return batch_mean(squares + coupling, weight) - prior * (1 - prior) * alpha**2
