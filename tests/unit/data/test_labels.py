from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.data.labels import hold_out, keep, relabel
from fedbench.engine.streams import stream
from fedbench.errors import UserError
from fedbench.specs import ImbalanceSpec, LabelSpec


def dropped(labels, seed=0, **rule):
    return keep(labels, ImbalanceSpec(**rule), stream(seed, "imbalance"))


def test_halves_takes_the_first_or_the_second_half_of_the_classes():
    classes = np.arange(10)
    first = relabel(classes, 10, LabelSpec(rule="halves"))
    second = relabel(classes, 10, LabelSpec(rule="halves", positive_half="second"))
    assert first.tolist() == [1] * 5 + [0] * 5
    assert second.tolist() == [0] * 5 + [1] * 5
    assert relabel(classes.astype(np.uint8), 10, LabelSpec()).tolist() == list(range(10))


@pytest.mark.parametrize(
    "negatives, ratio, positives",
    [
        (25_000, 0.1, 2_777),  # CIFAR-10 and CIFAR-100
        (30_000, 0.1, 3_333),  # FashionMNIST
        (2_500, 0.1, 277),  # STL10
        (10_000, 0.1, 1_111),  # CATvsDOG
        (10_000, 0.01, 101),
        (10_000, 0.05, 526),
        (10_000, 0.2, 2_500),
        (500, 0.1, 55),  # one class of CIFAR-100 (codasca)
        (500, 0.3, 214),
        (9_500, 0.05, 500),  # exact: 0.05 / 0.95 * 9500 is below 500 in floating point
    ],
)
def test_positives_are_dropped_to_the_ratio(negatives, ratio, positives):
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [negatives, negatives]))
    kept = dropped(labels, rule="drop_positives", imratio=ratio)
    assert np.bincount(labels[kept]).tolist() == [negatives, positives]
    assert (np.diff(kept) > 0).all()


def test_which_positives_stay_depends_on_the_seed_alone_and_less_is_a_part_of_more():
    labels = np.tile([0, 1], 500)
    some = dropped(labels, rule="drop_positives", imratio=0.1)
    assert set(some) < set(dropped(labels, rule="drop_positives", imratio=0.2))
    np.testing.assert_array_equal(some, dropped(labels, rule="drop_positives", imratio=0.1))
    assert set(some) != set(dropped(labels, seed=1, rule="drop_positives", imratio=0.1))


def test_positives_are_dropped_from_everywhere():
    labels = np.repeat([1, 0], 1000)
    kept = dropped(labels, rule="drop_positives", imratio=0.1)
    positions = kept[labels[kept] == 1]
    assert positions.min() < 100 and positions.max() > 900


@pytest.mark.parametrize("rho, left", [(5, 1184), (10, 592), (20, 296), (1, 5923)])
def test_minority_classes_keep_exactly_one_in_rho(rho, left):
    counts = [5923, 6742, 5958, 6131]  # MNIST's first classes
    labels = np.repeat(np.arange(4), counts)
    kept = dropped(labels, rule="minority", rho=rho, minority=(0, 2))
    assert np.bincount(labels[kept]).tolist() == [left, 6742, 5958 // rho, 6131]


def test_no_imbalance_keeps_everything():
    assert dropped(np.array([1, 0, 1])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "labels, rule, message",
    [
        (
            [0, 1],
            {"rule": "drop_positives", "imratio": 0.6},
            r"needs 3 positives .* there are 2: the highest imratio here is 0\.5",
        ),
        ([0, 1, 2], {"rule": "drop_positives", "imratio": 0.1}, r"needs binary labels"),
        ([0, 1], {"rule": "drop_positives", "imratio": 0.1}, r"leaves no sample of class 1"),
        (
            [0, 1],
            {"rule": "minority", "rho": 5, "minority": (2,)},
            r"minority class 2 has no training samples",
        ),
        ([0, 1], {"rule": "minority", "rho": 5, "minority": (1,)}, r"leaves no sample of class 1"),
    ],
)
def test_a_rule_that_does_not_fit_says_why(labels, rule, message):
    with pytest.raises(UserError, match=message):
        dropped(np.repeat(labels, 2), **rule)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), st.floats(0, 0.99), st.integers(0, 5))
def test_a_held_out_part_is_stratified(labels, share, seed):
    labels = np.array(labels)
    held = hold_out(labels, share, stream(seed, "validation"))
    assert len(np.unique(held)) == len(held)
    for label, count in enumerate(np.bincount(labels)):
        assert abs((labels[held] == label).sum() - share * count) <= 0.5 + 1e-9


def test_what_is_held_out_is_random_and_the_same_for_a_seed():
    labels = np.zeros(1000, int)
    held = [hold_out(labels, 0.1, stream(seed, "validation")).tolist() for seed in (0, 0, 1)]
    assert held[0] == held[1] != held[2]
    assert held[0][0] < 100 and held[0][-1] > 900
