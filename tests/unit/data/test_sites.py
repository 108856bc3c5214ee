"""Hospitals that train together: datasets joined as sites, clients of one site with whole patients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedbench.data import multi_source
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare, prepared_path, write_prepared
from fedbench.errors import UserError
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.train.training import load_arrays


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
    spec = DataSpec(dataset="a", sources=("b",), labels=named, partition={"rule": "sites"}, clients=5, **data)
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
    write_prepared(summary, arrays | {"y_test": arrays["y_test"][::-1]}, read.summary)
    make_partition(run.data, 0, hospitals)
    assert path.stat().st_mtime_ns != before


def test_what_does_not_fit_together_is_named(hospitals: Path) -> None:
    with pytest.raises(UserError, match="wide cannot be joined to a: its shape of a sample differs"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("wide",), clients=2), hospitals)
    with pytest.raises(UserError, match=r"none\.json is missing"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("none",), clients=2), hospitals)
    with pytest.raises(ValueError, match="a dataset is joined to itself: a, b, a"):
        DataSpec(dataset="a", sources=("b", "a"), clients=2)
