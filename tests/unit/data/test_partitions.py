"""The partition rules, on any labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.data.partition import split
from fedbench.data.partitions import Pool
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, PartitionSpec

RULES = st.one_of(
    st.just(PartitionSpec(rule="even")),
    st.floats(0, 1).map(lambda alpha: PartitionSpec(rule="mix", alpha=alpha)),
    st.floats(0, 1).map(lambda alpha: PartitionSpec(rule="mix", alpha=alpha, remainder="random")),
    st.floats(1e-3, 1e3).map(lambda delta: PartitionSpec(rule="dirichlet", delta=delta)),
)


def deal(labels, clients, seed=0, **rule):
    labels = np.asarray(labels)
    spec = DataSpec(dataset="toy", clients=clients, partition=PartitionSpec(**rule))
    return split(Pool(labels, labels), spec, stream(seed, "partition"))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=400), st.integers(1, 60), RULES, st.integers(0, 3))
def test_every_sample_goes_to_at_most_one_client_and_leftovers_are_told(labels, clients, rule, seed):
    if len(labels) < clients:
        with pytest.raises(UserError, match=f"client {len(labels)} would have none"):
            deal(labels, clients, seed, **rule.model_dump())
        return
    result = deal(labels, clients, seed, **rule.model_dump())
    dealt = np.concatenate(result.clients)
    assert len(np.unique(dealt)) == len(dealt) and set(dealt) <= set(range(len(labels)))
    sizes = [len(client) for client in result.clients]
    assert len(sizes) == clients and min(sizes) > 0 and max(sizes) - min(sizes) <= 1
    lost = len(labels) - len(dealt)
    assert lost < 2 * clients
    assert bool(lost) == any(remark.startswith(f"{lost} samples left out") for remark in result.remarks)
    again = deal(labels, clients, seed, **rule.model_dump())
    assert all((a == b).all() for a, b in zip(result.clients, again.clients, strict=True))


@given(st.lists(st.integers(0, 6), min_size=60, max_size=400), st.integers(1, 60))
def test_even_keeps_every_label_even_and_loses_nothing(labels, clients):
    labels = np.array(labels)
    parts = deal(labels, clients, rule="even").clients
    assert sum(map(len, parts)) == len(labels)
    counts = np.array([np.bincount(labels[part], minlength=7) for part in parts])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_even_is_random():
    labels = np.zeros(1000, int)
    parts = deal(labels, 4, rule="even").clients
    assert not any((np.diff(np.sort(part)) == 4).all() for part in parts)
    assert set(parts[0]) != set(deal(labels, 4, seed=1, rule="even").clients[0])


def runs(labels):
    return len(list(itertools.groupby(labels)))


@given(st.lists(st.integers(0, 6), min_size=60, max_size=400), st.integers(1, 60), st.floats(0, 1))
def test_mix_gives_one_iid_chunk_and_one_contiguous_chunk_of_the_sorted_rest(labels, clients, alpha):
    labels = np.array(labels)
    parts = deal(labels, clients, rule="mix", alpha=alpha).clients
    mixed = int(alpha * len(labels)) // clients
    assert {len(part) for part in parts} == {mixed + (len(labels) - mixed * clients) // clients}
    chained = np.concatenate([labels[part[mixed:]] for part in parts])
    assert (np.diff(chained) >= 0).all()


def test_mix_leaves_out_random_samples_or_the_last():
    labels = np.repeat(np.arange(10), 1009)  # 90 too many for 1,000 clients
    left = {}
    for remainder in ("last", "random"):
        parts = deal(labels, 1000, rule="mix", alpha=0.2, remainder=remainder).clients
        given = np.bincount(labels[np.concatenate(parts)], minlength=10)
        assert {len(part) for part in parts} == {10}
        left[remainder] = 1009 - given
    assert left["last"].tolist() == [0] * 9 + [90]
    assert (left["random"] > 0).all() and left["random"].sum() == 90


def test_mix_at_zero_makes_clients_of_one_class():
    labels = np.repeat(np.arange(10), 100)
    parts = deal(labels, 100, rule="mix", alpha=0).clients
    assert [runs(np.sort(labels[part])) for part in parts] == [1] * 100


def test_mix_at_one_is_close_to_iid():
    labels = np.repeat([0, 1, 2, 3], 10_000)
    parts = deal(labels, 10, rule="mix", alpha=1).clients
    counts = np.array([np.bincount(labels[part]) for part in parts])
    expected, sigma = 1000, np.sqrt(4000 * 0.25 * 0.75)
    assert (abs(counts - expected) < 4.5 * sigma).all()
    assert np.ptp(counts) > 0.5 * sigma  # random, not dealt evenly


def test_mix_takes_alpha_as_it_is_written():
    labels = np.repeat([0, 1], 50)
    parts = deal(labels, 29, rule="mix", alpha=0.29).clients  # 0.29 * 100 is below 29 in floating point
    assert runs([labels[part[0]] for part in parts]) > 2  # one i.i.d. sample each, not none


@pytest.mark.parametrize("delta", [1e-320, 1e-3, 0.3, 20, 1e3, 1.7e308])
def test_dirichlet_ends_for_500_clients_and_any_delta(delta):
    labels = np.random.default_rng(0).integers(0, 10, 60_000)
    result = deal(labels, 500, rule="dirichlet", delta=delta)
    assert [len(client) for client in result.clients] == [120] * 500
    assert len(np.unique(np.concatenate(result.clients))) == 60_000


def test_dirichlet_priors_have_the_spread_of_delta():
    labels = np.repeat([0, 1], 200_000)

    def spread(delta):
        # before a label can be exhausted
        parts = deal(labels, 400, rule="dirichlet", delta=delta).clients[:200]
        return np.var([labels[part].mean() for part in parts])

    for delta in (0.3, 2.0, 20.0):
        prior = 0.25 / (2 * delta + 1)  # Var of a Beta(delta, delta)
        sampling = (0.25 - prior) / 1000
        assert spread(delta) == pytest.approx(prior + sampling, rel=0.25)


def test_dirichlet_says_which_client_drew_again():
    result = deal(np.repeat([0, 1], [990, 10]), 10, rule="dirichlet", delta=1e-3)
    assert any("drew a new prior" in remark for remark in result.remarks)
    assert sum(map(len, result.clients)) == 1000


def test_dirichlet_samples_of_a_label_are_random():
    labels = np.zeros(1000, int)
    first = deal(labels, 10, rule="dirichlet", delta=1).clients[0]
    assert first.min() < 100 and first.max() > 900


@pytest.mark.parametrize(
    "rule, message",
    [
        ({"rule": "mix"}, "'mix' needs alpha"),
        ({"rule": "dirichlet"}, "'dirichlet' needs delta"),
        ({"rule": "dirichle"}, "unknown partition rule 'dirichle'. Did you mean 'dirichlet'"),
    ],
)
def test_a_rule_without_its_parameter_or_name_says_so(rule, message):
    with pytest.raises(UserError, match=message):
        deal([0, 1, 2], 2, **rule)


def test_a_rule_that_leaves_a_client_empty_is_stopped(monkeypatch):
    from fedbench.data.partitions import Deal, even

    monkeypatch.setattr(even, "partition", lambda *_: Deal([np.array([0]), np.array([], int)]))
    with pytest.raises(UserError, match="'even' leaves client 1 empty"):
        deal([0, 1, 2], 2, rule="even")


def test_the_first_of_more_clients_have_what_they_have_among_all():
    labels = np.repeat(np.arange(5), 8)
    full = deal(labels, 4, rule="even")
    alone = deal(labels, 1, rule="even", of=4)
    assert len(alone.clients) == 1 and np.array_equal(alone.clients[0], full.clients[0])
    assert len(deal(labels, 1, rule="even").clients[0]) == 40
    with pytest.raises(UserError, match="40 training samples are too few for 41 clients"):
        deal(labels, 1, rule="even", of=41)
    with pytest.raises(ValueError, match=r"partition\.of: 2 are fewer than data\.clients, 3"):
        deal(labels, 3, rule="even", of=2)
