"""Samples that know their hospital and their patient, or are of several datasets: who trains, and who is tested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from raw_files import OwnTable

from fedbench.data import datasets, multi_source
from fedbench.data.inputs import copied
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare, prepared_path, write_prepared
from fedbench.data.summary import Counts, by_site
from fedbench.errors import UserError
from fedbench.spec import DataSpec, NetworkSpec, PartitionSpec, RunSpec, TrainSpec
from fedbench.train.training import load_arrays

HOSPITALS = ("Basel", "Lyon", "Turin")
BY_SITE = PartitionSpec(rule="by_site")
SPEC = DataSpec(dataset="t", clients=3, partition=BY_SITE, labels={"rule": "halves"}, validation=0.25)
SITES = "site: hospital\ngroup: patient\n"


def rows(site: bool = True) -> list[str]:
    """Two samples of each of 180 patients; every third is sick, a feature is the patient's number."""
    lines = ["number,kind,patient,hospital"]
    for number in range(180):
        sick = "sick" if number // 3 % 3 == 0 else "healthy"
        lines += [f"{number},{sick},P{number},{HOSPITALS[number % 3]}"] * 2
    # every column that is named nowhere is a feature
    return lines if site else [line.rpartition(",")[0] for line in lines]


def test_each_sample_keeps_its_hospital_and_no_patient_is_in_two_parts(own_table: OwnTable) -> None:
    read = own_table("\n".join(rows()), SITES)
    assert read.sites == HOSPITALS and read.site_test is not None and read.site_train is not None
    train, test = read.x_train[:, 0].astype(int), read.x_test[:, 0].astype(int)
    assert read.site_train.tolist() == [number % 3 for number in train]
    assert read.site_test.tolist() == [number % 3 for number in test]
    assert not {*train} & {*test} and len(train) + len(test) == 360 and read.x_train.shape[1] == 1
    pairs = list(zip(read.site_test, read.y_test, strict=True))
    shares = [pairs.count((site, label)) for site in range(3) for label in range(2)]
    assert shares == [16, 8] * 3, "each hospital is tested on its share of each class"
    assert any("at each site, in whole groups" in note for note in read.notes)

    assert by_site(SPEC, 0, "data") == {}, "nothing is known before the partition"
    make_partition(SPEC, 0, "data")
    assert by_site(SPEC, 0, "data") == {"": Counts(72, 48, 24), **dict.fromkeys(HOSPITALS, Counts(24, 16, 8))}
    part = load_partition(SPEC, 0, "data")
    assert [{*(train[part.client(k)] % 3)} for k in range(3)] == [{0}, {1}, {2}]
    held = {*train[part.validation]}
    assert held and not held & {*train[part.indices]}
    assert len(part.indices) + len(part.validation) == len(train)


def test_a_class_of_one_patient_of_a_hospital_is_drawn_over_all_hospitals(own_table: OwnTable) -> None:
    """Twenty samples of one patient are the sick ones of Turin: he cannot be on both sides."""
    text = [line for line in rows() if not line.endswith("Turin") or "sick" not in line]
    read = own_table("\n".join(text + ["7,sick,Q,Turin"] * 20), SITES)
    assert any("over all sites together" in note for note in read.notes)


def test_a_table_without_site_is_as_it_was_and_one_with_it_another(own_table: OwnTable) -> None:
    text = "\n".join(rows(site=False))
    read = own_table(text, "group: patient\n")
    assert read.sites == () and read.site_test is None
    both = {*read.x_train[:, 0]} & {*read.x_test[:, 0]}
    assert len(both) > 10, "patients have samples in both parts unless told"
    before = prepared_path("t", "data").read_bytes()
    key = datasets.content("t")
    assert own_table("\n".join(rows()), SITES).sites == HOSPITALS and datasets.content("t") != key
    own_table(text, "group: patient\n")
    assert prepared_path("t", "data").read_bytes() == before and datasets.content("t") == key
    with pytest.raises(UserError, match="'by_site' needs a dataset that knows the site"):
        make_partition(SPEC, 0, "data")


def test_numbers_of_hospitals_and_patients_are_text(own_table: OwnTable) -> None:
    """007 and 7 are two hospitals, and 01 and 1 two patients."""
    text = [f"{n},{'ab'[n // 2 % 2]},{['01', '1'][n // 4 % 2]},{['007', '7'][n % 2]}" for n in range(80)]
    read = own_table("\n".join([rows()[0], *text]), f"{SITES}test_share: 0.5\n")
    assert read.sites == ("007", "7") and read.group_train is not None and read.site_train is not None
    number = read.x_train[:, 0].astype(int)
    assert read.site_train.tolist() == (number % 2).tolist()
    assert len({*(number // 4 % 2)}) == 1, "each patient is in one part"


def test_clients_are_the_hospitals_with_training_samples(own_data) -> None:  # type: ignore[no-untyped-def]
    """In an archive with a test part, and where a hospital of one patient is drawn into it."""
    x, y = np.arange(80.0)[:, None], np.arange(80) % 2
    site = np.array(["north", "south"])[np.arange(80) // 2 % 2]
    more = np.where(np.arange(80) < 8, "east", site)
    own_data("tested", x=x, y=y, site=site, x_test=x, y_test=y, site_test=more)
    drawn = set[int]()
    for name, test_share in (("tested", 0.2), *((f"drawn{share}", share) for share in (0.3, 0.4, 0.45))):
        if name != "tested":  # the patients of east are all or none in the test part
            group = np.where(more == "east", 0, np.arange(80))
            own_data(name, x=x, y=y, site=more, group=group, extra=f"test_share: {test_share}\n")
        prepare(name, "data")
        trained = load_prepared(name, "data").site_train
        assert datasets.count_sites([name]) == len(np.unique(trained))
        assert datasets.site_names([name]) == ("east", "north", "south")
        clients = datasets.count_sites([name])
        drawn.add(clients)
        spec = SPEC.model_copy(update={"dataset": name, "clients": clients, "validation": 0.0})
        make_partition(spec, 0, "data")
    assert drawn == {2, 3}


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
    network = NetworkSpec(name="mlp")
    return RunSpec(data=spec, network=network, method="fedavg", params={}, train=train, seed=0)


def test_datasets_are_joined_as_sites(hospitals: Path) -> None:
    run = run_on(validation=0.2)
    arrays = load_arrays(run, hospitals)
    assert arrays.x_train.shape == (100, 3) and len(arrays.x_test) == 10
    a, b = (multi_source.load_prepared(name, hospitals) for name in ("a", "b"))
    full = np.concatenate([a.x_train, b.x_train])
    for samples in arrays.clients:
        np.testing.assert_array_equal(copied(arrays.x_train, samples, torch.device("cpu")), full[samples])
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
    with pytest.raises(UserError, match="wide cannot be joined to a: they differ in shape of a sample"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("wide",), clients=2), hospitals)
    with pytest.raises(UserError, match=r"none\.json is missing"):
        multi_source.load_sources(DataSpec(dataset="a", sources=("none",), clients=2), hospitals)
    with pytest.raises(ValueError, match="a dataset is joined to itself: a, b, a"):
        DataSpec(dataset="a", sources=("b", "a"), clients=2)


def test_inputs_of_another_type_and_columns_in_another_order_are_not_joined(
    tmp_path: Path, own_data: Callable[..., str], own_table: OwnTable
) -> None:
    for name, kind in (("a", np.uint8), ("b", np.float32)):
        own_data(name, "", x=np.ones((40, 1, 8, 8), kind), y=np.arange(40) % 2)
        prepare(name, tmp_path)
    for name, header in (("c", "age,bmi,colour,y"), ("d", "bmi,age,colour,y"), ("e", "age,bmi,colour,y")):
        words = ["red", "green", "pink" if name == "e" else "blue"]
        Path(f"{name}.csv").write_text(
            "\n".join([header, *(f"{n},1,{words[n % 3]},{n % 2}" for n in range(60))])
        )
        Path(f"config/datasets/{name}.yaml").write_text(f"file: {name}.csv\nlabel: y\n")
        prepare(name, tmp_path)
    for first, other, what in (("a", "b", "type of inputs"), ("c", "d", "features"), ("c", "e", "features")):
        with pytest.raises(UserError, match=f"{other} cannot be joined to {first}: they differ in {what}"):
            multi_source.load_sources(DataSpec(dataset=first, sources=(other,), clients=2), tmp_path)
