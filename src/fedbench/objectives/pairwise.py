"""Surrogates of the AUC on pairs (cycp, Table 10): psi(t), t = a - b, with a positive's score a and a negative's b.

Each function returns psi and psi' in closed form, so that a method needs no graph through scores that it did not
compute. The derivative with respect to a is psi', with respect to b -psi' (cycp eq. 12 has psi' for both; eq. 57 is
right). The min-max form of the square loss, which needs no pairs, is :mod:`fedbench.objectives.auc_minimax`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fedbench.errors import UserError, unknown


class Psi(NamedTuple):
    """The loss psi and its derivative at each element of t, both of t's shape."""

    value: Tensor
    slope: Tensor


def square(t: Tensor, margin: float) -> Psi:
    """(m - t)^2 (Gao et al., 2013); it also punishes pairs that are in the right order by more than m."""
    gap = margin - t
    return Psi(gap**2, -2 * gap)


def squared_hinge(t: Tensor, margin: float) -> Psi:
    """max(m - t, 0)^2 (Zhao et al., 2011)."""
    gap = (margin - t).clamp_min(0)
    return Psi(gap**2, -2 * gap)


def logistic(t: Tensor, scale: float) -> Psi:
    """log(1 + exp(-s t)) (Gao and Zhou, 2015); the table's caption does not define s."""
    return Psi(-F.logsigmoid(scale * t), -scale * torch.sigmoid(-scale * t))


def sigmoid(t: Tensor, temperature: float) -> Psi:
    """1 / (1 + exp(t / lambda)) (Calders and Jaroszewicz, 2007), the paper's PSM: psi(t) + psi(-t) = 1."""
    wrong, right = torch.sigmoid(-t / temperature), torch.sigmoid(t / temperature)
    return Psi(wrong, -wrong * right / temperature)


def barrier_hinge(t: Tensor, margin: float, slope: float) -> Psi:
    """max(m - tau (m + t), tau (t - m), m - t) (Charoenphakdee et al., 2019): symmetric on [-m, m], not smooth.

    At the kinks, the derivative of m - t is taken.
    """
    pieces = torch.stack([margin - t, margin - slope * (margin + t), slope * (t - margin)])
    value, piece = pieces.max(0)
    piece = torch.where(pieces[0] == value, 0, piece)
    return Psi(value, t.new_tensor([-1.0, -slope, slope])[piece])


def q_norm_hinge(t: Tensor, margin: float, q: float) -> Psi:
    """max(m - t, 0)^q, q > 1; the paper's formula lacks the max, and is unbounded below for odd q."""
    gap = (margin - t).clamp_min(0)
    return Psi(gap**q, -q * gap ** (q - 1))


LOSSES = ("square", "squared_hinge", "logistic", "sigmoid", "barrier_hinge", "q_norm_hinge")


@dataclass(frozen=True)
class PairLoss:
    """A loss of Table 10 by its name; parameters that the loss does not have are ignored.

    Attributes:
        name: one of :data:`LOSSES`.
        margin: m of square, squared hinge, barrier hinge and q-norm hinge; positive.
        temperature: lambda of sigmoid, and 1/s of logistic; positive.
        slope: tau of barrier hinge; positive.
        q: exponent of q-norm hinge; above 1.

    Raises:
        UserError: unknown loss, or a parameter is out of its range.
    """

    name: str
    margin: float
    temperature: float
    slope: float
    q: float

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise unknown("pairwise loss", self.name, LOSSES)
        for key, least in (("margin", 0), ("temperature", 0), ("slope", 0), ("q", 1)):
            if not getattr(self, key) > least:
                raise UserError(
                    f"pairwise loss {self.name!r}: {key} is {getattr(self, key)}, but has to be above {least}"
                )

    def __call__(self, t: Tensor) -> Psi:
        """Return psi and its derivative at every element of ``t``."""
        match self.name:
            case "square":
                return square(t, self.margin)
            case "squared_hinge":
                return squared_hinge(t, self.margin)
            case "logistic":
                return logistic(t, 1 / self.temperature)
            case "sigmoid":
                return sigmoid(t, self.temperature)
            case "barrier_hinge":
                return barrier_hinge(t, self.margin, self.slope)
            case _:
                return q_norm_hinge(t, self.margin, self.q)


class ActivePassive(NamedTuple):
    """Losses [K] of a batch's scores paired with passive scores, and derivatives by the batch's scores [K, B]."""

    loss: Tensor
    slope: Tensor


def active_passive(
    scores: Tensor, labels: Tensor, valid: Tensor, positives: Tensor, negatives: Tensor, psi: PairLoss,
    weights: Sequence[float] = (1.0, 1.0),
) -> ActivePassive:  # fmt: skip
    """Pair a batch's own (active) scores with passive scores, which are constants (cycp eq. 11 and 12).

    The loss is mean psi(s_i - n_j) over active positives i and passive negatives j, plus mean psi(p_j - s_i) over
    active negatives i and passive positives j. A mean over no pairs is zero.

    Args:
        scores: active scores, [K, B].
        labels: 1 for positives, 0 for negatives, [K, B].
        valid: false for padding, [K, B].
        positives: passive scores of positives, [K, P] or [K, 0].
        negatives: passive scores of negatives, [K, P] or [K, 0].
        psi: the loss of a pair.
        weights: factors of the term with active negatives and of the term with active positives.
    """
    positive = labels == 1
    parts = [
        _against(scores, valid & positive, negatives, psi, 1),
        _against(scores, valid & ~positive, positives, psi, -1),
    ]
    of_negatives, of_positives = weights
    return ActivePassive(
        of_positives * parts[0].loss + of_negatives * parts[1].loss,
        of_positives * parts[0].slope + of_negatives * parts[1].slope,
    )


def _against(scores: Tensor, chosen: Tensor, passive: Tensor, psi: PairLoss, sign: int) -> ActivePassive:
    """Pair the ``chosen`` scores s_i with passive scores r_j: the mean of psi(sign * (s_i - r_j)) over i and j."""
    if not passive.shape[1]:
        return ActivePassive(scores.new_zeros(len(scores)), torch.zeros_like(scores))
    share = chosen / chosen.sum(1, keepdim=True).clamp_min(1)
    pairs = psi(sign * (scores[:, :, None] - passive[:, None]))
    return ActivePassive((share * pairs.value.mean(2)).sum(1), sign * share * pairs.slope.mean(2))
