"""Cross-entropy, focal and ratio losses."""

from __future__ import annotations

import math

import pytest
import torch

from fedbench.objectives.cross_entropy import cross_entropy, per_sample
from fedbench.objectives.focal import focal
from fedbench.objectives.mean import batch_mean
from fedbench.objectives.ratio import class_weights, mean_of_ratios, ratio_of_sums


def test_one_logit_equals_two_classes_with_logits_zero_and_z() -> None:
    z = torch.randn(2, 5, 1)
    labels = torch.randint(0, 2, (2, 5))
    both = torch.cat([torch.zeros_like(z), z], -1)
    torch.testing.assert_close(per_sample(z, labels), per_sample(both, labels))


def test_is_minus_the_log_probability_of_the_label() -> None:
    scores = torch.tensor([[[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]])
    expected = torch.tensor([[-math.log(math.e**4 / (math.e + math.e**2 + math.e**4)), math.log(3)]])
    torch.testing.assert_close(per_sample(scores, torch.tensor([[2, 0]])), expected)


def test_class_weights_multiply_and_are_not_divided_out() -> None:
    scores, labels = torch.randn(2, 4, 3), torch.tensor([[0, 0, 0, 0], [0, 1, 2, 2]])
    factors = torch.tensor([[2.0, 3.0, 5.0], [1.0, 10.0, 100.0]])
    losses = per_sample(scores, labels)
    expected = torch.stack([2 * losses[0].mean(), (losses[1] * torch.tensor([1.0, 10, 100, 100])).sum() / 4])
    torch.testing.assert_close(cross_entropy(scores, labels, class_weights=factors), expected)


def test_padding_has_no_say() -> None:
    scores, labels = torch.randn(1, 5, 1), torch.tensor([[1, 0, 1, 0, 0]])
    weight = torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0, 0]])
    torch.testing.assert_close(
        cross_entropy(scores, labels, weight), cross_entropy(scores[:, :3], labels[:, :3])
    )
    assert batch_mean(torch.tensor([[1.0, 3.0]]), None) == 2


def test_focal_loss_has_its_closed_form_and_survives_extreme_scores() -> None:
    scores, labels = torch.randn(1, 6, 3), torch.tensor([[0, 1, 2, 0, 1, 2]])
    p = torch.softmax(scores, -1).gather(2, labels[..., None])[..., 0]
    torch.testing.assert_close(focal(scores, labels, 2.0), (-((1 - p) ** 2) * p.log()).mean(1))
    torch.testing.assert_close(focal(scores, labels, 0.0), cross_entropy(scores, labels))
    extreme = torch.tensor([[[200.0], [-200.0]]], requires_grad=True)
    loss = focal(extreme, torch.tensor([[0, 0]]), 2.0)
    (gradient,) = torch.autograd.grad(loss.sum(), extreme)
    assert loss.item() == pytest.approx(100) and torch.isfinite(gradient).all()


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_a_sample_classified_beyond_doubt_adds_nothing_to_the_focal_gradient(gamma: float) -> None:
    # its cross-entropy is 0 in single precision
    scores = torch.tensor([[[200.0, 0.0, 0.0]]], requires_grad=True)
    (gradient,) = torch.autograd.grad(focal(scores, torch.tensor([[0]]), gamma).sum(), scores)
    assert torch.equal(gradient, torch.zeros_like(scores))


GRADIENTS = torch.tensor(
    [
        [[4.0, 2.0], [1.0, 3.0], [1.0, 5.0]],  # of the samples of class 0: rows are classes
        [[1.0, -1.0], [6.0, 8.0], [3.0, 1.0]],
        [[1.0, 2.0], [2.0, 1.0], [9.0, 3.0]],
    ]
)


def test_the_mean_of_ratios_has_its_closed_form() -> None:
    expected = [
        abs((2 * 4 / (1 + 1) + 2 * 2 / (-1 + 2)) / 2),
        abs((2 * 6 / (1 + 2) + 2 * 8 / (3 + 1)) / 2),
        abs((2 * 9 / (1 + 3) + 2 * 3 / (5 + 1)) / 2),
    ]
    torch.testing.assert_close(mean_of_ratios(GRADIENTS), torch.tensor(expected))


def test_the_ratio_of_sums_takes_weights_that_one_class_dominates() -> None:
    """Each class leads at two of the six weights; at the fifth, another comes near, as far on the other side of 0."""
    updates = torch.tensor(
        [
            [[4.0, 1.0], [-1.0, 0.5], [2.0, 0.0]],
            [[-1.0, 3.0], [5.0, 0.5], [1.0, 0.0]],
            [[2.0, -2.0], [0.5, 8.0], [-1.7, 0.0]],
        ]
    )
    expected = [4 / abs((-1 + 2) / 2), (3 + 5) / abs((1 - 2 - 1 + 0.5) / 2), 8 / 0.5]
    torch.testing.assert_close(ratio_of_sums(-updates, 0.8), torch.tensor(expected))
    expected[0] = (4 + 2) / abs((-1 + 2 + 1 - 1.7) / 2)
    torch.testing.assert_close(ratio_of_sums(-updates, 0.9), torch.tensor(expected))


def test_a_class_without_a_denominator_has_no_ratio() -> None:
    dead = torch.zeros(2, 2, 4)
    alone = torch.tensor([[[-3.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, -2.0]]])
    for ratios in (
        mean_of_ratios(dead),
        mean_of_ratios(alone),
        ratio_of_sums(dead, 0.8),
        ratio_of_sums(alone, 0.8),
    ):
        assert ratios.isnan().all()


def test_the_ratio_of_one_logit_is_the_ratio_and_its_inverse() -> None:
    negative, positive = torch.tensor([2.0, 4.0]), torch.tensor([-1.0, -8.0])
    gradients = torch.stack([torch.stack([-negative, negative]), torch.stack([-positive, positive])])
    torch.testing.assert_close(mean_of_ratios(gradients), torch.tensor([(2 + 0.5) / 2, (0.5 + 2) / 2]))


def test_class_weights_are_bounded() -> None:
    ratios = torch.tensor([0.5, 2e9, float("nan")])
    torch.testing.assert_close(class_weights(ratios, 1.0, 0.1, 100.0, 7.0), torch.tensor([1.05, 11.0, 1.7]))
    torch.testing.assert_close(class_weights(ratios, 0.5, 0.0, 1e6, 7.0), torch.full((3,), 0.5))
