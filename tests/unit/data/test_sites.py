"""Hospitals that train together: datasets joined as sites, clients of one site with whole patients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbench.data import multi_source
from fedbench.data.multi_source import Rows
from fedbench.data.partition import load_partition, make_partition, split
from fedbench.data.partitions import Deal, Pool
from fedbench.data.partitions.sites import apportioned
from fedbench.data.prepared import load_prepared, prepare, prepared_path, write_prepared
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, NetworkSpec, PartitionSpec, RunSpec, TrainSpec
from fedbench.train.training import load_arrays

SITES = PartitionSpec(rule="sites")


def deal(sites: np.ndarray, patients: np.ndarray | None, clients: int, seed: int = 0) -> Deal:
    spec = DataSpec(dataset="toy", clients=clients, partition=SITES)
    pool = Pool(np.arange(len(sites)) % 2, np.arange(len(sites)) % 2, patients, sites)
    return split(pool, spec, stream(seed, "partition"))


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
        with pytest.raises(
            UserError, match=rf"{clients} clients are fewer than the {len(sizes)} sites.*or more"
        ):
            deal(sites, patients, clients, seed)
        return
    dealt = deal(sites, patients, clients, seed)
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


def test_clients_of_a_site_have_about_equally_many_samples_at_random() -> None:
    patients = np.repeat(np.arange(300), np.arange(300) % 7 + 1)
    sites = np.zeros(len(patients), int)
    dealt = deal(sites, patients, 4)
    assert np.ptp([len(samples) for samples in dealt.clients]) <= 7
    assert set(dealt.clients[0]) != set(deal(sites, patients, 4, seed=1).clients[0])


def test_without_sites_the_rule_says_what_to_do() -> None:
    spec = DataSpec(dataset="toy", clients=1, partition=SITES)
    with pytest.raises(
        UserError, match=r"'sites' needs a dataset that knows the site of each sample, or several datasets"
    ):
        split(Pool(np.array([0, 1]), np.array([0, 1])), spec, stream(0, "partition"))


def test_rows_of_several_arrays_are_read_by_position() -> None:
    parts = [np.arange(6).reshape(3, 2), np.arange(6, 14).reshape(4, 2)]
    rows, full = Rows(parts), np.concatenate(parts)
    assert rows.shape == (7, 2) and len(rows) == 7 and rows.dtype == full.dtype
    for positions in ([0, 6, 3, 3, 2], [], [5]):
        where = np.array(positions, dtype=int)
        np.testing.assert_array_equal(rows[where], full[where])


@pytest.fixture
def hospitals(own_data: Callable[..., str], tmp_path: Path) -> Path:
    """Two datasets whose patients have the same numbers, and one with another shape."""
    rng = np.random.default_rng(0)
    extra = "whole_groups: true\n"
    for name, n, width in (("a", 40, 3), ("b", 60, 3), ("wide", 40, 4)):
        group = np.arange(n) // 2
        own_data(name, extra, x=rng.normal(size=(n, width)).astype(np.float32), y=np.arange(n) % 2, group=group,
            x_test=rng.normal(size=(10, width)).astype(np.float32), y_test=np.arange(10) % 2)  # fmt: skip
        prepare(name, tmp_path)
    return tmp_path


def run_on(**data: Any) -> RunSpec:
    named = {"rule": "named", "positive": [1]}
    spec = DataSpec(dataset="a", sources=("b",), labels=named, partition=SITES, clients=5, **data)
    train = TrainSpec(rounds=1, period=1, batch_size=4)
    return RunSpec(
        data=spec, network=NetworkSpec(name="mlp"), method="fedavg", params={}, train=train, seed=0
    )


def test_datasets_are_joined_as_sites(hospitals: Path) -> None:
    run = run_on(validation=0.2)
    arrays = load_arrays(run, hospitals)
    assert arrays.x_train.shape == (100, 3) and len(arrays.x_test) == 10
    a, b = (multi_source.load_prepared(name, hospitals) for name in ("a", "b"))
    full = np.concatenate([a.x_train, b.x_train])
    for samples in arrays.clients:
        np.testing.assert_array_equal(arrays.x_train[samples], full[samples])
        assert len(set(samples >= 40)) == 1  # one site
    prepared = multi_source.load_sources(run.data, hospitals)
    # not those of one site twice
    assert prepared.group_train is not None and len(set(prepared.group_train)) == 50
    held = set(prepared.group_train[arrays.validation])
    assert held and not held & set(prepared.group_train[np.concatenate(arrays.clients)])
    assert len(load_arrays(run_on(tests="all"), hospitals).x_test) == 20
    assert load_partition(run.data, 0, hospitals).summary["clients_of_sites"] == {"0": 2, "1": 3}


def test_a_partition_is_made_again_when_one_of_its_sources_changed(hospitals: Path) -> None:
    run = run_on()
    path = make_partition(run.data, 0, hospitals)
    before = path.stat().st_mtime_ns
    make_partition(run.data, 0, hospitals)
    assert path.stat().st_mtime_ns == before
    read, summary = load_prepared("b", hospitals), prepared_path("b", hospitals)
    arrays = {part: getattr(read, part) for part in read.summary["arrays"]}
    write_prepared(summary, arrays | {"y_test": arrays["y_test"][::-1]}, read.summary, hospitals / "none")
    make_partition(run.data, 0, hospitals)
    assert path.stat().st_mtime_ns != before


def test_what_does_not_fit_together_is_named(hospitals: Path) -> None:
    with pytest.raises(UserError, match="wide cannot be joined to a: its shape of a sample differs"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("wide",), clients=2), hospitals)
    with pytest.raises(UserError, match=r"none\.json is missing"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("none",), clients=2), hospitals)
    with pytest.raises(ValueError, match="a dataset is joined to itself: a, b, a"):
        DataSpec(dataset="a", sources=("b", "a"), clients=2)
