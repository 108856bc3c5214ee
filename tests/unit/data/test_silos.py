"""codasca's clients: halves of the classes, positives dropped class by class, classes dealt to silos."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.data.labels import keep, relabel
from fedbench.data.partition import split
from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, ImbalanceSpec, LabelSpec, PartitionSpec

MNIST = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SECOND = LabelSpec(rule="halves", positive_half="second")


def silos(classes: np.ndarray, labels: np.ndarray, clients: int, seed: int = 0, **rule: Any) -> Deal:
    spec = DataSpec(dataset="toy", clients=clients, partition=PartitionSpec(rule="silos", **rule))
    return split(Pool(labels, classes), spec, stream(seed, "partition"))


def heterogeneous(counts: list[int], imratio: float, clients: int) -> tuple[np.ndarray, list[int], list[int]]:
    """Make the classes imbalanced and deal them: kept samples of each class, sizes of clients, and of their silos."""
    classes = np.repeat(np.arange(len(counts)), counts)
    labels = relabel(classes, [str(c) for c in range(len(counts))], SECOND)
    spec = ImbalanceSpec(rule="drop_positives_per_class", imratio=imratio)
    kept = keep(labels, spec, stream(0, "imbalance"), classes)
    deal = silos(classes[kept], labels[kept], clients)
    return (
        np.bincount(classes[kept]),
        sorted(map(len, deal.clients)),
        [len(np.unique(c)) for c in deal.clients],
    )


def test_cifar100_ih_has_the_papers_sizes() -> None:
    kept, sizes, _ = heterogeneous([500] * 100, 0.1, 8)
    assert kept.tolist() == [500] * 50 + [55] * 50 and sum(sizes) == 27_750
    assert sizes == [3_330] * 6 + [3_885] * 2
    kept, sizes, _ = heterogeneous([500] * 100, 0.3, 16)
    assert kept.tolist() == [500] * 50 + [214] * 50 and sum(sizes) == 35_700
    assert sizes == [3 * 714] * 14 + [4 * 714] * 2


def test_mnist_ih_and_fashion_mnist_ih_have_an_equal_number_of_each_positive_class() -> None:
    kept, sizes, _ = heterogeneous(MNIST, 0.1, 5)
    assert kept.tolist() == MNIST[:5] + [679] * 5 and sum(sizes) == 33_991
    kept, sizes, _ = heterogeneous([6000] * 10, 0.1, 5)
    assert kept.tolist() == [6000] * 5 + [666] * 5 and sizes == [6_666] * 5


CLASSES = st.lists(st.integers(1, 40), min_size=2, max_size=24)


@given(CLASSES, st.integers(1, 12), st.integers(0, 4), st.booleans())
def test_each_class_lies_in_one_silo_whole(counts: list[int], clients: int, seed: int, paired: bool) -> None:
    classes = np.repeat(np.arange(len(counts)), counts)
    classes = np.random.default_rng(seed).permutation(classes)
    labels = relabel(classes, [str(c) for c in range(len(counts))], LabelSpec(rule="random_halves"), seed)
    halves = [np.unique(classes[labels == label]) for label in (1, 0)]
    if min(map(len, halves)) < clients:
        with pytest.raises(UserError, match=r"classes are too few for \d+ clients"):
            silos(classes, labels, clients, seed)
        return
    if paired and len(halves[0]) != len(halves[1]):
        with pytest.raises(UserError, match="cannot pair"):
            silos(classes, labels, clients, seed, paired=True)
        return
    deal = silos(classes, labels, clients, seed, paired=paired)
    assert sorted(np.concatenate(deal.clients)) == list(range(len(classes)))
    where = np.empty(len(classes), dtype=int)
    for client, samples in enumerate(deal.clients):
        where[samples] = client
    owner = {name: set(where[classes == name].tolist()) for name in range(len(counts))}
    assert all(len(clients_of) == 1 for clients_of in owner.values())
    for half in halves:
        part = np.bincount([owner[name].copy().pop() for name in half], minlength=clients)
        assert part.max() - part.min() <= 1
    if paired:
        assert [owner[name] for name in halves[0]] == [owner[name] for name in halves[1]]
    told = deal.facts["silos"]
    for client, samples in enumerate(deal.clients):
        mine = np.unique(classes[samples]).tolist()
        assert sorted(told[client]["positive_classes"] + told[client]["negative_classes"]) == mine
        assert told[client]["positive_ratio"] == pytest.approx(labels[samples].mean(), abs=1e-6)


def test_halves_are_shuffled_independently_by_the_seed() -> None:
    classes = np.arange(40)
    labels = relabel(classes, [str(c) for c in classes], SECOND)
    dealt = [silos(classes, labels, 4, seed).facts["silos"] for seed in (0, 0, 1)]
    assert dealt[0] == dealt[1] != dealt[2]
    positive, negative = dealt[0][0]["positive_classes"], dealt[0][0]["negative_classes"]
    assert [name - 20 for name in positive] != negative
    assert positive != list(range(20, 40, 4))


@given(
    st.lists(st.integers(30, 60), min_size=2, max_size=8), st.lists(st.integers(5, 60), min_size=1, max_size=8),
    st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.9]), st.integers(0, 3),
)  # fmt: skip
def test_every_positive_class_keeps_its_quota_exactly(
    negative: list[int], positive: list[int], imratio: float, seed: int
) -> None:
    classes = np.repeat(np.arange(len(negative) + len(positive)), [*negative, *positive])
    labels = (classes >= len(negative)).astype(int)
    spec = ImbalanceSpec(rule="drop_positives_per_class", imratio=imratio)
    ratio = Fraction(str(imratio))
    quota = ratio / (1 - ratio) * sum(negative) / len(positive) // 1
    if not 0 < quota <= min(positive):
        with pytest.raises(UserError, match=r"leaves no sample of class|needs \d+ samples of class"):
            keep(labels, spec, stream(seed, "imbalance"), classes)
        return
    kept = keep(labels, spec, stream(seed, "imbalance"), classes)
    assert np.bincount(classes[kept]).tolist() == [*negative, *[int(quota)] * len(positive)]
    assert (np.diff(kept) > 0).all()


def test_which_samples_of_a_class_stay_is_random() -> None:
    classes = np.repeat([0, 1], 1000)
    spec = ImbalanceSpec(rule="drop_positives_per_class", imratio=0.1)
    kept = [keep(classes, spec, stream(seed, "imbalance"), classes)[1000:] for seed in (0, 1)]
    assert kept[0].min() < 1100 and kept[0].max() > 1900 and set(kept[0]) != set(kept[1])


def test_random_halves_are_drawn_by_the_seed_alone_and_train_and_test_agree() -> None:
    names = [str(c) for c in range(11)]
    rule = LabelSpec(rule="random_halves")
    drawn = [relabel(np.arange(11), names, rule, seed) for seed in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    assert drawn[0].sum() == drawn[2].sum() == 5
    test = np.array([3, 3, 10, 0])
    assert relabel(test, names, rule, 1).tolist() == drawn[2][test].tolist()
    other = LabelSpec(rule="random_halves", positive_half="second")
    assert relabel(np.arange(11), names, other, 0).tolist() == (1 - drawn[0]).tolist()


def test_labels_and_rules_that_do_not_fit_say_why() -> None:
    classes = np.arange(6)
    with pytest.raises(UserError, match=r"'silos' needs binary labels: set labels\.rule"):
        silos(classes, classes, 2)
    with pytest.raises(UserError, match=r"'silos': 3 positive classes are too few for 4 clients.*at most 3"):
        silos(classes, classes % 2, 4)
    with pytest.raises(UserError, match="'drop_positives_per_class' needs binary labels"):
        spec = ImbalanceSpec(rule="drop_positives_per_class", imratio=0.1)
        keep(classes, spec, stream(0, "imbalance"), classes)
    with pytest.raises(ValueError, match="'drop_positives_per_class' needs imratio"):
        ImbalanceSpec(rule="drop_positives_per_class")
    spec = DataSpec(dataset="toy", clients=1, labels={"rule": "halves"})
    with pytest.raises(UserError, match="toy: the training part has no positive sample"):
        split(Pool(np.zeros(4, int), np.zeros(4, int)), spec, stream(0, "partition"))
