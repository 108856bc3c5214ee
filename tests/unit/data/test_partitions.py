"""The partition rules, on any labels: each sample at most once, the papers' sizes and shares, random by the seed."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedbench.data.labels import keep, relabel
from fedbench.data.partition import split
from fedbench.data.partitions import Deal, Pool
from fedbench.data.partitions.sites import apportioned
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, ImbalanceSpec, LabelSpec, PartitionSpec


def deal(labels, clients, seed=0, classes=None, groups=None, sites=None, **rule):
    labels = np.asarray(labels)
    spec = DataSpec(dataset="toy", clients=clients, partition=PartitionSpec(**rule))
    pool = Pool(labels, labels if classes is None else np.asarray(classes), groups, sites)
    return split(pool, spec, stream(seed, "partition"))


RULES = st.one_of(
    st.just(PartitionSpec(rule="even")),
    st.floats(0, 1).map(lambda alpha: PartitionSpec(rule="mix", alpha=alpha)),
    st.floats(0, 1).map(lambda alpha: PartitionSpec(rule="mix", alpha=alpha, remainder="random")),
    st.floats(1e-3, 1e3).map(lambda delta: PartitionSpec(rule="dirichlet", delta=delta)),
)


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
        ({"rule": "class_dirichlet"}, "'class_dirichlet' needs delta"),
        ({"rule": "sites"}, "'sites' needs a dataset that knows the site of each sample"),
        ({"rule": "dirichle"}, "unknown partition rule 'dirichle'. Did you mean 'dirichlet'"),
    ],
)
def test_a_rule_without_its_parameter_or_name_says_so(rule, message):
    with pytest.raises(UserError, match=message):
        deal([0, 1, 2], 2, **rule)


def test_a_rule_that_leaves_a_client_empty_is_stopped(monkeypatch):
    from fedbench.data.partitions import even

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


def by_class(classes, clients, seed=0, labels=None, **rule):
    labels = classes if labels is None else labels
    return deal(labels, clients, seed, classes, rule="class_dirichlet", **rule)


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
            by_class(classes, clients, delta=delta, least=least)
        return
    result = by_class(classes, clients, delta=delta, least=least)
    assert np.sort(np.concatenate(result.clients)).tolist() == list(range(len(classes)))
    assert min(map(len, result.clients)) >= least


@pytest.mark.parametrize("delta", [1e-320, 1e-6, 0.1, 10, 1e6, 1.7e308])
def test_it_ends_for_200_clients_and_any_delta(delta: float) -> None:
    classes = np.random.default_rng(0).integers(0, 10, 40_000)
    result = by_class(classes, 200, delta=delta)
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
    result = by_class(classes, n_clients, delta=delta, least=1)
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
    of_class = by_class(classes, 50, labels=labels, delta=0.1)
    by_label = by_class(classes, 50, labels=labels, delta=0.1, by="labels")
    for result, most in ((of_class, 7), (by_label, 9)):
        negatives = [classes[client][classes[client] > 0] for client in result.clients]
        kinds = [len(np.unique(part)) for part in negatives if len(part) > 100]
        assert max(kinds) <= 9 and (np.mean(kinds) < most if most < 9 else min(kinds) == 9)
    assert np.median([len(c) for c in by_label.clients]) < np.median([len(c) for c in of_class.clients])


def test_samples_that_fill_up_a_client_come_at_random_from_the_largest() -> None:
    classes = np.repeat(np.arange(5), 400)
    result = by_class(classes, 20, delta=1e-6, least=50)
    filled = [client for client in result.clients if len(client) == 50]
    assert len(filled) >= 15
    assert all(len(np.unique(classes[client])) > 1 for client in filled)


def test_one_client_a_group() -> None:
    labels, groups = np.zeros(6, int), np.array([7, 3, 7, 3, 9, 3])
    dealt = deal(labels, 3, groups=groups, rule="by_group")
    assert [client.tolist() for client in dealt.clients] == [[1, 3, 5], [0, 2], [4]]
    with pytest.raises(UserError, match=r"each of the 3 groups .* data.clients is 2: set it to 3"):
        deal(labels, 2, groups=groups, rule="by_group")
    with pytest.raises(UserError, match="knows the group of each sample"):
        deal(labels, 3, rule="by_group")


def test_a_class_with_flipped_samples_lies_in_one_silo():
    classes = np.repeat(np.arange(10), 100)
    labels = (classes < 5).astype(int)
    labels[[*range(100, 120), *range(300, 310)]] = 0
    for paired in (False, True):
        dealt = np.concatenate(silos(classes, labels, 4, paired=paired).clients)
        assert sorted(dealt) == list(range(1000))


def silos(classes, labels, clients, seed=0, **rule):
    return deal(labels, clients, seed, classes, rule="silos", **rule)


MNIST = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


SECOND = LabelSpec(rule="halves", positive_half="second")


def heterogeneous(counts: list[int], imratio: float, clients: int) -> tuple[np.ndarray, list[int]]:
    """Make the classes imbalanced and deal them: kept samples of each class, sizes of clients."""
    classes = np.repeat(np.arange(len(counts)), counts)
    labels = relabel(classes, [str(c) for c in range(len(counts))], SECOND)
    spec = ImbalanceSpec(rule="drop_positives_per_class", imratio=imratio)
    kept = keep(labels, spec, stream(0, "imbalance"), classes)
    deal = silos(classes[kept], labels[kept], clients)
    return np.bincount(classes[kept]), sorted(map(len, deal.clients))


def test_cifar100_ih_has_the_papers_sizes() -> None:
    kept, sizes = heterogeneous([500] * 100, 0.1, 8)
    assert kept.tolist() == [500] * 50 + [55] * 50 and sum(sizes) == 27_750
    assert sizes == [3_330] * 6 + [3_885] * 2
    kept, sizes = heterogeneous([500] * 100, 0.3, 16)
    assert kept.tolist() == [500] * 50 + [214] * 50 and sum(sizes) == 35_700
    assert sizes == [3 * 714] * 14 + [4 * 714] * 2


def test_mnist_ih_and_fashion_mnist_ih_have_an_equal_number_of_each_positive_class() -> None:
    kept, sizes = heterogeneous(MNIST, 0.1, 5)
    assert kept.tolist() == MNIST[:5] + [679] * 5 and sum(sizes) == 33_991
    kept, sizes = heterogeneous([6000] * 10, 0.1, 5)
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

    spec = DataSpec(dataset="toy", clients=1, labels={"rule": "halves"})
    with pytest.raises(UserError, match="toy: the training part has no positive sample"):
        split(Pool(np.zeros(4, int), np.zeros(4, int)), spec, stream(0, "partition"))


def of_sites(sites, patients, clients, seed):
    labels = np.arange(len(sites)) % 2
    return deal(labels, clients, seed, labels, patients, sites, rule="sites")


@given(
    st.lists(st.integers(20, 90), min_size=1, max_size=5),
    st.integers(1, 12),
    st.integers(0, 3),
    st.booleans(),
)
def test_a_client_is_of_one_site_and_a_patient_of_one_client(
    sizes: list[int], clients: int, seed: int, known: bool
) -> None:
    rng = np.random.default_rng(seed)
    sites = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    patients = sites * 1000 + rng.integers(0, 19, len(sites)) if known else None
    if clients < len(sizes):
        with pytest.raises(UserError, match=rf"{clients} clients are fewer than the {len(sizes)} sites"):
            of_sites(sites, patients, clients, seed)
        return
    dealt = of_sites(sites, patients, clients, seed)
    assert sorted(np.concatenate(dealt.clients)) == list(range(len(sites)))
    assert all(len(set(sites[samples])) == 1 for samples in dealt.clients)
    if patients is not None:
        owners = [set(patients[samples]) for samples in dealt.clients]
        assert sum(map(len, owners)) == len(set(patients))
    told = dealt.facts["clients_of_sites"]
    counted = np.bincount([sites[samples[0]] for samples in dealt.clients], minlength=len(sizes))
    assert counted.tolist() == [told[str(site)] for site in range(len(sizes))] and min(counted) >= 1


def test_the_papers_corpora_get_clients_in_proportion() -> None:
    sizes = np.array([227_395, 112_120, 110_641, 377_110, 15_000])
    assert apportioned(sizes, 16).tolist() == [4, 2, 2, 7, 1]
    assert apportioned(sizes, 5).tolist() == [1, 1, 1, 1, 1]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 30))
def test_seats_are_all_taken_and_near_their_share(sizes: list[int], more: int) -> None:
    seats = len(sizes) + more
    shares = apportioned(np.array(sizes), seats)
    assert shares.sum() == seats and shares.min() >= 1
    quotas = np.array(sizes) / sum(sizes) * seats
    if quotas.min() >= 1:
        assert (abs(shares - quotas) < 1).all()


def test_groups_are_dealt_whole_and_evenly() -> None:
    group = np.random.default_rng(0).integers(0, 23, 500)
    dealt = deal(np.zeros(500, int), 4, 1, np.arange(500), group, rule="groups")
    owned = [set(group[samples].tolist()) for samples in dealt.clients]
    assert sorted(np.concatenate(dealt.clients)) == list(range(500))
    assert sorted(map(len, owned)) == [5, 6, 6, 6] and len(set().union(*owned)) == 23
    assert dealt.facts == {"groups": [len(names) for names in owned]}
    other = deal(np.zeros(500, int), 4, 2, np.arange(500), group, rule="groups")
    assert not np.array_equal(dealt.clients[0], other.clients[0])


def test_without_groups_classes_are_dealt() -> None:
    classes = np.repeat(np.arange(6), 3)
    dealt = deal(classes, 3, rule="groups")
    assert all(len(set(classes[samples].tolist())) == 2 and len(samples) == 6 for samples in dealt.clients)
    with pytest.raises(UserError, match="6 groups are too few for 7 clients"):
        deal(classes, 7, rule="groups")
