from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.data.labels import flip, hold_out, keep, relabel
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import ImbalanceSpec, LabelSpec

NAMES = "abcdefghij"
FINDINGS = ("no finding", "edema", "edema+mass", "massive", "mass")


def dropped(labels, seed=0, **rule):
    return keep(labels, ImbalanceSpec(**rule), stream(seed, "imbalance"))


def test_halves_takes_the_first_or_the_second_half_of_the_classes():
    classes = np.arange(10)
    first = relabel(classes, NAMES, LabelSpec(rule="halves"))
    second = relabel(classes, NAMES, LabelSpec(rule="halves", positive_half="second"))
    assert first.tolist() == [1] * 5 + [0] * 5
    assert second.tolist() == [0] * 5 + [1] * 5
    assert relabel(classes.astype(np.uint8), NAMES, LabelSpec()).tolist() == list(range(10))
    odd = relabel(np.arange(5), NAMES[:5], LabelSpec(rule="halves"))
    assert odd.tolist() == [1, 1, 0, 0, 0], "the middle class belongs to the second half"


def test_a_name_lists_its_class_and_those_that_are_joined_with_it():
    listed = relabel(np.arange(5), FINDINGS, LabelSpec(rule="named", positive=["mass"]))
    assert listed.tolist() == [0, 0, 1, 0, 1]
    marked = relabel(np.arange(3), ("A", "A+", "B"), LabelSpec(rule="named", positive=["A"]))
    assert marked.tolist() == [1, 0, 0], "a sign at the end of a name joins nothing"


@pytest.mark.parametrize(
    "negatives, positives, rule, value, left",
    [
        (25_000, 25_000, "drop_positives", 0.1, 2_777),  # CIFAR-10 and CIFAR-100
        (30_000, 30_000, "drop_positives", 0.1, 3_333),  # FashionMNIST
        (10_000, 10_000, "drop_positives", 0.01, 101),
        (500, 500, "drop_positives", 0.1, 55),  # one class of CIFAR-100 (codasca)
        (9_500, 9_500, "drop_positives", 0.05, 500),  # exact: 0.05 / 0.95 * 9500 is below 500 in floats
        (9_000, 4_500, "remove_positives", 0.95, 225),  # exact: 0.05 * 4500 is above 225 in floats
        (9_000, 4_495, "remove_positives", 0.95, 224),
        (9_000, 454, "remove_positives", 0.5, 227),
        (9_000, 10, "remove_positives", 0, 10),
    ],
)
def test_positives_are_dropped_to_the_ratio_or_by_the_share(negatives, positives, rule, value, left):
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [negatives, positives]))
    kept = dropped(labels, rule=rule, **{"imratio" if rule == "drop_positives" else "share": value})
    assert np.bincount(labels[kept]).tolist() == [negatives, left]
    assert (np.diff(kept) > 0).all()


def test_which_positives_stay_depends_on_the_seed_alone_and_less_is_a_part_of_more():
    labels = np.tile([0, 1], 500)
    some = dropped(labels, rule="drop_positives", imratio=0.1)
    assert set(some) < set(dropped(labels, rule="drop_positives", imratio=0.2))
    np.testing.assert_array_equal(some, dropped(labels, rule="drop_positives", imratio=0.1))
    assert set(some) != set(dropped(labels, seed=1, rule="drop_positives", imratio=0.1))


@pytest.mark.parametrize("rho, left", [(5, 1184), (10, 592), (20, 296), (1, 5923)])
def test_minority_classes_keep_exactly_one_in_rho(rho, left):
    counts = [5923, 6742, 5958, 6131]  # MNIST's first classes
    labels = np.repeat(np.arange(4), counts)
    kept = dropped(labels, rule="minority", rho=rho, minority=(0, 2))
    assert np.bincount(labels[kept]).tolist() == [left, 6742, 5958 // rho, 6131]


@pytest.mark.parametrize(
    "labels, rule, message",
    [
        ([0, 1], {"rule": "drop_positives", "imratio": 0.6}, r"needs 3 .* the highest imratio .* 0\.5"),
        ([0, 1, 2], {"rule": "drop_positives", "imratio": 0.1}, r"needs binary labels"),
        ([0, 1, 2], {"rule": "drop_positives_per_class", "imratio": 0.1}, "needs binary labels"),
        ([0, 1], {"rule": "drop_positives", "imratio": 0.1}, r"leaves no sample of class 1"),
        ([0, 1], {"rule": "minority", "rho": 5, "minority": (2,)}, r"class 2 has no training samples"),
        ([0, 1], {"rule": "minority", "rho": 5, "minority": (1,)}, r"leaves no sample of class 1"),
        ([0, 1], {"rule": "remove_positives", "share": 0.95}, r"leaves no sample of class 1"),
        ([0, 1, 2], {"rule": "remove_positives", "share": 0.95}, r"needs binary labels"),
    ],
)
def test_a_rule_that_does_not_fit_says_why(labels, rule, message):
    with pytest.raises(UserError, match=message):
        dropped(np.repeat(labels, 2), **rule)


@pytest.mark.parametrize(
    "positive, message",
    [
        (["mas"], "unknown positive class 'mas'. Did you mean 'mass'"),
        ([5], "unknown positive class '5'"),
        ([-1], "unknown positive class '-1'"),
        ([0, 1, 2, 3, 4], "lists every class"),
    ],
)
def test_unknown_or_all_classes_are_refused(positive: list[int | str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        relabel(np.arange(5), FINDINGS, LabelSpec(rule="named", positive=tuple(positive)))


@pytest.mark.parametrize("share, flipped", [(0, 0), (0.2, 55), (0.29, 79), (0.999, 274)])
def test_exactly_the_share_of_the_positives_is_flipped(share: float, flipped: int) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [1000, 275]))
    before = labels.copy()
    noisy = flip(labels, share, stream(0, "flip"))
    assert (labels == before).all()
    assert noisy.sum() == 275 - flipped and (noisy <= labels).all()


def test_flips_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="no positive is left"):
        flip(np.zeros(5, int), 0.2, stream(0, "flip"))
    with pytest.raises(UserError, match="needs binary labels"):
        flip(np.arange(5), 0.2, stream(0, "flip"))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), st.floats(0, 0.99), st.integers(0, 5))
def test_a_held_out_part_is_stratified(labels, share, seed):
    labels = np.array(labels)
    held = hold_out(labels, share, stream(seed, "validation"))
    assert len(np.unique(held)) == len(held)
    for label, count in enumerate(np.bincount(labels)):
        assert abs((labels[held] == label).sum() - share * count) <= 0.5 + 1e-9


def test_what_is_held_out_without_groups_is_what_it_ever_was():
    held = hold_out(np.arange(40) % 3 % 2, 0.2, stream(3, "validation"))
    assert held.tolist() == [1, 2, 3, 11, 13, 24, 26, 31]  # trained runs rest on these draws


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), st.floats(0, 0.99), st.integers(0, 5))
def test_groups_of_one_sample_are_held_out_like_samples(labels, share, seed):
    labels = np.array(labels)
    parts = [
        hold_out(labels, share, stream(seed, "validation"), groups)
        for groups in (None, np.arange(len(labels))[::-1])
    ]
    counts = [np.bincount(labels[part], minlength=5).tolist() for part in parts]
    assert counts[0] == counts[1] and (np.diff(parts[1]) > 0).all()


def patients(seed):
    """400 patients with 1 to 20 samples each; every tenth has a malignant one or two."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(400), rng.integers(1, 21, 400)))
    first = np.unique(group, return_index=True)[1]
    labels = np.zeros(len(group), int)
    labels[first[::10]] = labels[first[5::20]] = 1
    return labels, group


@pytest.mark.parametrize("seed", range(5))
def test_a_patient_lies_in_one_part_and_both_labels_have_about_the_share(seed):
    labels, group = patients(seed)
    held = hold_out(labels, 0.15, stream(seed, "validation"), group)
    assert not set(group[held]) & set(np.delete(group, held))
    assert labels[held].sum() == round(0.15 * labels.sum())
    assert len(held) == pytest.approx(0.15 * len(labels), rel=0.15)
    # neither the large nor the small
    assert len(held) / len(set(group[held])) == pytest.approx(10.5, rel=0.2)


def test_which_groups_are_held_out_depends_on_the_seed_alone():
    labels, group = patients(0)
    held = [hold_out(labels, 0.15, stream(seed, "validation"), group).tolist() for seed in (0, 0, 1)]
    assert held[0] == held[1] != held[2]
    names = np.array([f"patient {n:03d}" for n in group])
    assert hold_out(labels, 0.15, stream(0, "validation"), names).tolist() == held[0]


@pytest.mark.parametrize(
    "labels, groups, share, message",
    [
        ([0] * 4 + [1] * 4, [0, 1, 2, 3, 4, 4, 4, 4], 0.25, r"4 samples of label 1 lie in 1 groups: too"),
        ([0] * 8, [0, 1] * 4, 0.2, r"8 samples of label 0 lie in 2 groups: .* hold out 0\.2 .*whole groups"),
        ([0] * 8, [0] * 8, 0.5, r"8 samples of label 0 lie in 1 groups"),  # all of it would be held out
    ],
)
def test_too_few_groups_say_which_label_lacks_them(labels, groups, share, message):
    with pytest.raises(UserError, match=message):
        hold_out(np.array(labels), share, stream(0, "validation"), np.array(groups))


def test_nothing_is_held_out_of_nothing_nor_with_no_share():
    empty = np.array([], dtype=int)
    assert hold_out(empty, 0.2, stream(0, "validation"), empty).tolist() == []
    assert hold_out(np.zeros(3, int), 0, stream(0, "validation"), np.zeros(3, int)).tolist() == []
