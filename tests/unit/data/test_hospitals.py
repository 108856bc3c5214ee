"""Samples that know their hospital and their patient: who trains, and who is tested."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import Prepared, load_prepared, prepare, prepared_path
from fedbench.data.summary import Counts, by_site
from fedbench.errors import UserError
from fedbench.spec import DataSpec, PartitionSpec

HOSPITALS = ("Basel", "Lyon", "Turin")
SPEC = DataSpec(
    dataset="patients",
    clients=3,
    partition=PartitionSpec(rule="by_site"),
    labels={"rule": "halves"},
    validation=0.25,
)


def table(folder: Path, keys: str = "site: hospital\ngroup: patient\n", patients: int = 180) -> Prepared:
    """Prepare two samples of each patient; every third is sick, a feature is the patient's number."""
    rows = ["number,diagnosis,patient,hospital"]
    for number in range(patients):
        sick = "sick" if number // 3 % 3 == 0 else "healthy"
        rows += [f"{number},{sick},P{number},{HOSPITALS[number % 3]}"] * 2
    if "site" not in keys:  # every column that is named nowhere is a feature
        rows = [row.rpartition(",")[0] for row in rows]
    (folder / "patients.csv").write_text("\n".join(rows))
    (folder / "config/datasets").mkdir(parents=True, exist_ok=True)
    (folder / "config/datasets/patients.yaml").write_text(f"file: patients.csv\nlabel: diagnosis\n{keys}")
    prepare("patients", "data")
    return load_prepared("patients", "data")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_sample_keeps_its_hospital_and_no_patient_is_in_two_parts(project: Path) -> None:
    read = table(project)
    assert read.sites == HOSPITALS and read.site_test is not None and read.site_train is not None
    train, test = read.x_train[:, 0].astype(int), read.x_test[:, 0].astype(int)
    assert read.site_train.tolist() == [number % 3 for number in train]
    assert read.site_test.tolist() == [number % 3 for number in test]
    assert not {*train} & {*test}
    assert len(read.x_train) + len(read.x_test) == 360 and read.x_train.shape[1] == 1


def test_every_hospital_is_tested_on_its_share_of_each_class(project: Path) -> None:
    read = table(project)
    pairs = list(zip(read.site_test, read.y_test, strict=True))  # type: ignore[arg-type]
    assert [pairs.count((site, label)) for site in range(3) for label in range(2)] == [16, 8] * 3
    assert any("at each site, in whole groups" in note for note in read.notes)


def test_test_samples_of_each_hospital_are_counted_by_class(project: Path) -> None:
    table(project)
    assert by_site(SPEC, 0, "data") == {}, "nothing is known before the partition"
    make_partition(SPEC, 0, "data")
    assert by_site(SPEC, 0, "data") == {"": Counts(72, 48, 24), **dict.fromkeys(HOSPITALS, Counts(24, 16, 8))}


def test_a_class_of_one_patient_of_a_hospital_is_drawn_over_all_hospitals(project: Path) -> None:
    """Twenty samples of one patient are the sick ones of Turin: he cannot be on both sides."""
    table(project)
    text = [
        line
        for line in Path("patients.csv").read_text().split("\n")
        if not line.endswith("Turin") or "sick" not in line
    ]
    Path("patients.csv").write_text("\n".join(text + ["7,sick,Q,Turin"] * 20))
    prepare("patients", "data")
    read = load_prepared("patients", "data")
    assert any("over all sites together" in note for note in read.notes)


def test_clients_are_hospitals_and_validation_is_drawn_by_patient(project: Path) -> None:
    read = table(project)
    make_partition(SPEC, 0, "data")
    made = load_partition(SPEC, 0, "data")
    number = read.x_train[:, 0].astype(int)
    assert [{*(number[made.client(k)] % 3)} for k in range(3)] == [{0}, {1}, {2}]
    held = {*number[made.validation]}
    assert held and not held & {*number[made.indices]}
    assert len(made.indices) + len(made.validation) == len(number)


def test_a_table_without_site_is_as_it_was_and_one_with_it_another(project: Path) -> None:
    read = table(project, "group: patient\n")
    assert read.sites == () and read.site_test is None
    assert len({*read.x_train[:, 0]} & {*read.x_test[:, 0]}) > 10, (
        "patients have samples in both parts unless told"
    )
    before = prepared_path("patients", "data").read_bytes()
    key = datasets.content("patients")
    assert table(project).sites == HOSPITALS and datasets.content("patients") != key
    table(project, "group: patient\n")
    assert prepared_path("patients", "data").read_bytes() == before and datasets.content("patients") == key
    with pytest.raises(UserError, match="'by_site' needs a dataset that knows the site"):
        make_partition(SPEC, 0, "data")


def test_numbers_of_hospitals_and_patients_are_text(project: Path) -> None:
    """007 and 7 are two hospitals, and 01 and 1 two patients."""
    table(project)
    rows = [f"{n},{'ab'[n // 2 % 2]},{['01', '1'][n // 4 % 2]},{['007', '7'][n % 2]}" for n in range(80)]
    Path("patients.csv").write_text("\n".join(["number,diagnosis,patient,hospital", *rows]))
    Path("config/datasets/patients.yaml").write_text(
        "file: patients.csv\nlabel: diagnosis\nsite: hospital\ngroup: patient\ntest_share: 0.5\n"
    )
    prepare("patients", "data")
    read = load_prepared("patients", "data")
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
        drawn.add(datasets.count_sites([name]))
        made = SPEC.model_copy(
            update={"dataset": name, "clients": datasets.count_sites([name]), "validation": 0.0}
        )
        make_partition(made, 0, "data")
    assert drawn == {2, 3}
