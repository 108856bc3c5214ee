"""The min-max AUC loss: saddle point, value, gradients, its AUC-margin form, padding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedbench.objectives.auc_minimax import auc_minimax

Point = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, float]


@pytest.fixture
def point(double: None) -> Point:
    """Scores [2, 9], labels, a, b, alpha of two clients, and the share of positives (the same for both)."""
    rng = torch.Generator().manual_seed(1)
    scores = torch.rand(2, 9, generator=rng)
    labels = torch.tensor([[1, 1, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 1, 1, 0]])
    a, b, alpha = torch.randn(3, 2, generator=rng)
    return scores, labels, a, b, alpha, 3 / 9


def saddle(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a = torch.stack([s[y == 1].mean() for s, y in zip(scores, labels, strict=True)])
    b = torch.stack([s[y == 0].mean() for s, y in zip(scores, labels, strict=True)])
    return a, b, b - a


def test_saddle_is_the_class_means_and_their_difference(point: Point) -> None:
    scores, labels, *_, p = point
    a, b, alpha = (part.requires_grad_() for part in saddle(scores, labels))
    value = auc_minimax(scores, labels, a, b, alpha, p)
    for gradient in torch.autograd.grad(value.sum(), (a, b, alpha)):
        torch.testing.assert_close(gradient, torch.zeros(2))
    with torch.no_grad():
        for shift in (-0.1, 0.1):  # a minimum in a and b, a maximum in alpha
            assert (auc_minimax(scores, labels, a + shift, b, alpha, p) > value).all()
            assert (auc_minimax(scores, labels, a, b + shift, alpha, p) > value).all()
            assert (auc_minimax(scores, labels, a, b, alpha + shift, p) < value).all()


def test_value_at_the_saddle_is_the_square_loss_over_all_pairs(point: Point) -> None:
    scores, labels, *_, p = point
    value = auc_minimax(scores, labels, *saddle(scores, labels), p)
    for result, s, y in zip(value, scores, labels, strict=True):
        pairs = torch.stack([(1 - plus + minus) ** 2 for plus in s[y == 1] for minus in s[y == 0]])
        torch.testing.assert_close(result + p * (1 - p), p * (1 - p) * pairs.mean())


def test_gradients_have_their_closed_forms(point: Point) -> None:
    scores, labels, a, b, alpha, p = point
    leaves = [part.clone().requires_grad_() for part in (scores, a, b, alpha)]
    s, *rest = leaves
    gradient = torch.autograd.grad(auc_minimax(s, labels, *rest, p).sum(), leaves)
    size = labels.shape[1]
    positive, negative = (labels == 1).double(), (labels == 0).double()
    expected = (
        (
            2 * (1 - p) * positive * (scores - a[:, None])
            + 2 * p * negative * (scores - b[:, None])
            + 2 * (1 + alpha[:, None]) * (p * negative - (1 - p) * positive)
        )
        / size,
        -2 * (1 - p) / size * (positive * (scores - a[:, None])).sum(1),
        -2 * p / size * (negative * (scores - b[:, None])).sum(1),
        2 / size * (p * (negative * scores).sum(1) - (1 - p) * (positive * scores).sum(1))
        - 2 * p * (1 - p) * alpha,
    )
    for mine, theirs in zip(gradient, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_gradients_agree_with_finite_differences(point: Point) -> None:
    scores, labels, a, b, alpha, p = point
    leaves = [part.clone().requires_grad_() for part in (scores, a, b, alpha)]
    assert torch.autograd.gradcheck(lambda s, *rest: auc_minimax(s, labels, *rest, p), leaves)


def test_equals_the_auc_margin_form_after_shifting_alpha(point: Point) -> None:
    """LibAUC's loss with margin 1 at 1 + alpha is the same function plus p(1-p)."""
    scores, labels, a, b, alpha, p = point
    shifted = 1 + alpha
    positive, negative = (labels == 1).double(), (labels == 0).double()
    margin = (
        (1 - p) * (positive * (scores - a[:, None]) ** 2).mean(1)
        + p * (negative * (scores - b[:, None]) ** 2).mean(1)
        + 2
        * shifted
        * (p * (1 - p) + (p * negative * scores).mean(1) - ((1 - p) * positive * scores).mean(1))
        - p * (1 - p) * shifted**2
    )
    torch.testing.assert_close(margin, auc_minimax(scores, labels, a, b, alpha, p) + p * (1 - p))


def test_prior_is_a_constant_not_the_batchs(point: Point) -> None:
    scores, _, a, b, alpha, p = point
    none = torch.zeros(2, 9, dtype=torch.int64)
    expected = p * ((scores - b[:, None]) ** 2 + 2 * (1 + alpha[:, None]) * scores).mean(1)
    torch.testing.assert_close(auc_minimax(scores, none, a, b, alpha, p), expected - p * (1 - p) * alpha**2)


def test_padding_has_no_say(point: Point) -> None:
    scores, labels, a, b, alpha, p = point
    weight = torch.zeros(2, 9)
    weight[0, :4], weight[1, :] = 1 / 4, 1 / 9
    result = auc_minimax(scores, labels, a, b, alpha, p, weight)
    first = auc_minimax(scores[:1, :4], labels[:1, :4], a[:1], b[:1], alpha[:1], p)
    second = auc_minimax(scores[1:], labels[1:], a[1:], b[1:], alpha[1:], p)
    torch.testing.assert_close(result, torch.cat([first, second]))
