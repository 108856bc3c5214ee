"""The partitions of cycp: classes dealt in Dirichlet shares, and one client a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedbench.data.partition import split
from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, PartitionSpec


def deal(
    classes: np.ndarray, clients: int, seed: int = 0, labels: np.ndarray | None = None, **rule: Any
) -> Deal:
    spec = DataSpec(dataset="toy", clients=clients, partition=PartitionSpec(rule="class_dirichlet", **rule))
    pool = Pool(classes if labels is None else labels, classes)
    return split(pool, spec, stream(seed, "partition"))


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=300),
    st.integers(1, 40),
    st.floats(-6, 6).map(lambda power: 10**power),
    st.integers(1, 9),
)
def test_every_sample_goes_to_one_client_and_none_has_too_few(
    labels: list[int], clients: int, delta: float, least: int
) -> None:
    classes = np.array(labels)
    if len(classes) < least * clients:
        with pytest.raises(UserError, match="too few"):
            deal(classes, clients, delta=delta, least=least)
        return
    result = deal(classes, clients, delta=delta, least=least)
    assert np.sort(np.concatenate(result.clients)).tolist() == list(range(len(classes)))
    assert min(map(len, result.clients)) >= least


@pytest.mark.parametrize("delta", [1e-320, 1e-6, 0.1, 10, 1e6, 1.7e308])
def test_it_ends_for_200_clients_and_any_delta(delta: float) -> None:
    classes = np.random.default_rng(0).integers(0, 10, 40_000)
    result = deal(classes, 200, delta=delta)
    sizes = np.array([len(client) for client in result.clients])
    assert sizes.sum() == 40_000 and sizes.min() >= 8
    if delta >= 1e6:
        assert np.ptp(sizes) <= 10 and result.remarks == ()
    if delta <= 1e-6:  # a class goes to one client, the others are filled up
        assert (sizes == 8).sum() >= 190 and "had fewer than 8 samples" in result.remarks[0]


@pytest.mark.parametrize("delta", [0.1, 0.5, 10])
def test_shares_are_those_of_a_dirichlet(delta: float) -> None:
    n_clients, n_classes, size = 20, 400, 2000
    classes = np.repeat(np.arange(n_classes), size)
    result = deal(classes, n_clients, delta=delta, least=1)
    shares = np.array([np.bincount(classes[client], minlength=n_classes) for client in result.clients]) / size
    for client in (0, n_clients - 1):  # each share is Beta(delta, (N - 1) delta) on its own
        law = stats.beta(delta, (n_clients - 1) * delta)
        for share in (0.005, 0.02, 0.05, 0.1, 0.3):
            expected = law.cdf(share)
            spread = max(expected * (1 - expected), 1e-3) / n_classes
            assert abs((shares[client] <= share).mean() - expected) < 4.5 * spread**0.5
    assert shares.var() == pytest.approx(law.var(), rel=0.1)
    np.testing.assert_allclose(shares.sum(0), 1)


def test_classes_or_labels_are_dealt() -> None:
    classes = np.repeat(np.arange(10), 1000)
    labels = (classes == 0).astype(np.int64)
    by_class = deal(classes, 50, labels=labels, delta=0.1)
    by_label = deal(classes, 50, labels=labels, delta=0.1, by="labels")
    for result, most in ((by_class, 7), (by_label, 9)):
        negatives = [classes[client][classes[client] > 0] for client in result.clients]
        kinds = [len(np.unique(part)) for part in negatives if len(part) > 100]
        assert max(kinds) <= 9 and (np.mean(kinds) < most if most < 9 else min(kinds) == 9)
    assert np.median([len(c) for c in by_label.clients]) < np.median([len(c) for c in by_class.clients])


def test_samples_that_fill_up_a_client_come_at_random_from_the_largest() -> None:
    classes = np.repeat(np.arange(5), 400)
    result = deal(classes, 20, delta=1e-6, least=50)
    filled = [client for client in result.clients if len(client) == 50]
    assert len(filled) >= 15
    assert all(len(np.unique(classes[client])) > 1 for client in filled)


def test_one_client_a_group() -> None:
    groups = np.array([7, 3, 7, 3, 9, 3])
    pool = Pool(np.zeros(6, int), np.zeros(6, int), groups)
    spec = DataSpec(dataset="toy", clients=3, partition=PartitionSpec(rule="by_group"))
    dealt = split(pool, spec, stream(0, "partition"))
    assert [client.tolist() for client in dealt.clients] == [[1, 3, 5], [0, 2], [4]]
    with pytest.raises(UserError, match=r"each of the 3 groups .* data.clients is 2: set it to 3"):
        split(pool, spec.model_copy(update={"clients": 2}), stream(0, "partition"))
    with pytest.raises(UserError, match="knows the group of each sample"):
        split(Pool(pool.labels, pool.classes), spec, stream(0, "partition"))


def test_without_delta_it_says_so() -> None:
    with pytest.raises(UserError, match="'class_dirichlet' needs delta"):
        deal(np.zeros(100, int), 2)
