"""Partitions on disk, and the programs that the workflow runs to make them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedbench.data.partition import Partition, load_partition, make_partition, partition_path
from fedbench.data.prepared import load_prepared, prepared_path, write_prepared
from fedbench.errors import UserError
from fedbench.spec import DataSpec
from forks import stand_ins

RULE = {
    "dataset": "digits",
    "labels": {"rule": "halves"},
    "imbalance": {"rule": "drop_positives", "imratio": 0.1},
    "clients": 4,
    "validation": 0.1,
}


@pytest.fixture
def folder(digits, tmp_path):
    """A data folder of the test's own, with digits prepared."""
    shutil.copytree(digits / "prepared", tmp_path / "prepared")
    return tmp_path


def made(spec: DataSpec, seed: int, folder: Path) -> Partition:
    make_partition(spec, seed, folder)
    return load_partition(spec, seed, folder)


def test_every_fact_in_the_file_is_true(folder):
    spec = DataSpec(**RULE)
    partition, arrays = made(spec, 3, folder), load_prepared("digits", folder)
    positive = arrays.y_train < 5
    used = np.concatenate([partition.indices, partition.validation])
    summary = partition.summary
    assert len(np.unique(used)) == len(used) == summary["train"]["n"] + summary["validation"]["n"]
    np.testing.assert_array_equal(partition.y_train[used], positive[used])
    assert (np.delete(partition.y_train, used) == -1).all()
    np.testing.assert_array_equal(partition.y_test, arrays.y_test < 5)
    n_negative = (~positive).sum()
    counts = np.bincount(partition.y_train[used])
    assert counts.tolist() == [n_negative, n_negative // 9]
    held = np.bincount(partition.y_train[partition.validation])
    assert held.tolist() == (0.1 * counts + 0.5).astype(int).tolist()
    assert summary["key"] == partition_path(spec, 3, folder).stem
    assert summary["seed"] == 3 and summary["repairs"] == []
    assert DataSpec(**summary["rule"]) == spec
    assert summary["sizes"] == [len(partition.client(k)) for k in range(partition.n_clients)]
    for k in range(4):
        assert np.bincount(partition.y_train[partition.client(k)]).tolist() == summary["class_counts"][k]
        assert (np.diff(partition.client(k)) > 0).all()
    assert np.sum(summary["class_counts"], axis=0).tolist() == list(summary["train"]["class_counts"].values())
    assert summary["train"]["positive_ratio"] == pytest.approx(0.1, abs=0.01)
    stored = (partition.indices, partition.offsets, partition.y_train, partition.validation)
    assert {array.dtype for array in stored} == {np.dtype("i8")}


def test_original_labels_and_several_classes(folder):
    rule = {"rule": "minority", "rho": 5, "minority": [0, 2]}
    spec = DataSpec(dataset="digits", imbalance=rule, partition={"rule": "mix", "alpha": 0.2}, clients=20)
    partition, arrays = made(spec, 0, folder), load_prepared("digits", folder)
    np.testing.assert_array_equal(partition.y_train[partition.indices], arrays.y_train[partition.indices])
    assert partition.summary["train"]["positive_ratio"] is None
    assert len(partition.validation) == 0 and partition.validation.dtype == np.int64
    full, kept = np.bincount(arrays.y_train), np.bincount(partition.y_train[partition.y_train >= 0])
    assert kept[0] == full[0] // 5 and kept[2] == full[2] // 5
    assert "samples left out" in partition.summary["repairs"][0]


def test_the_same_bytes_in_another_process_and_other_bytes_for_another_seed(folder, digits):
    spec = DataSpec(**RULE)
    first = make_partition(spec, 0, folder)
    code = (
        "import sys; from fedbench.data.partition import make_partition; from fedbench.spec import DataSpec;"
        "make_partition(DataSpec.model_validate_json(sys.argv[1]), 0, sys.argv[2])"
    )
    shutil.copytree(digits / "prepared", folder / "other" / "prepared")
    other = folder / "other"
    subprocess.run([sys.executable, "-c", code, spec.model_dump_json(), str(other)], check=True)
    twin = partition_path(spec, 0, other)
    assert first.read_bytes() == twin.read_bytes()
    assert first.with_suffix(".json").read_bytes() == twin.with_suffix(".json").read_bytes()
    single, second = (made(spec, seed, folder).indices.tolist() for seed in (0, 1))
    assert single != second


def test_rules_that_differ_in_the_partition_alone_drop_and_hold_out_the_same_samples(folder):
    first = DataSpec(**RULE)
    two = DataSpec(**RULE | {"clients": 7, "partition": {"rule": "dirichlet", "delta": 0.3}})
    parts = [made(spec, 0, folder) for spec in (first, two)]
    np.testing.assert_array_equal(parts[0].validation, parts[1].validation)
    kept = [set(np.flatnonzero(part.y_train >= 0)) for part in parts]
    assert len(kept[0] - kept[1]) < 7 and kept[1] <= kept[0]  # all but what does not divide by seven


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("damage", ["truncated", "missing", "another"])
def test_a_damaged_partition_is_named_and_made_again(folder, suffix, damage):
    spec = DataSpec(**RULE)
    path = make_partition(spec, 0, folder)
    content, file = path.read_bytes(), path.with_suffix(suffix)
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        shutil.copy(make_partition(spec, 1, folder).with_suffix(suffix), file)  # of the same sizes
    with pytest.raises(UserError, match=rf"{path.stem}\.(npz|json):? .*is .*data_prep/partition\.py"):
        load_partition(spec, 0, folder)
    make_partition(spec, 0, folder)
    assert path.read_bytes() == content


def test_data_need_neither_torch_nor_torchvision(folder):
    code = (
        "import sys; from fedbench.data import datasets, partition, prepared, summary;"
        "from fedbench.spec import DataSpec; sys.modules['torchvision'] = None;"
        "spec = DataSpec(dataset='digits', clients=3); partition.make_partition(spec, 0, sys.argv[1]);"
        "print(datasets.get('mnist').status(__import__('pathlib').Path('none')).detail);"
        "assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "pip install 'fedbench-suite[vision]'" in done.stdout


def prepared_melanoma(folder, **more):
    """Prepare 600 samples of 100 patients."""
    y = (np.arange(600) % 100 % 10 == 0).astype(int)
    facts = {"dataset": "melanoma", "notes": [], "classes": ["benign", "malignant"]}
    write_prepared(prepared_path("melanoma", folder), {"y_train": y, "y_test": y[:20], **more}, facts)


def test_whole_groups_cannot_be_held_out_without_groups_nor_of_too_few(tmp_path):
    spec = DataSpec(dataset="melanoma", clients=4, validation=0.1)
    prepared_melanoma(tmp_path)
    with pytest.raises(UserError, match=r"melanoma has whole_groups, but was prepared without groups"):
        make_partition(spec, 0, tmp_path)
    prepared_melanoma(tmp_path, group_train=np.arange(600) // 300)
    with pytest.raises(UserError, match=r"melanoma: validation: the \d+ samples of label . lie in 2 groups"):
        make_partition(spec, 0, tmp_path)


PROGRAMS = Path(__file__).parents[3] / "data_prep"


@pytest.mark.parametrize(
    ("program", "more", "message"),
    [
        ("prepare", ["digit"], "Did you mean 'digits'?"),
        ("prepare", ["mnist", "--mirror", "nowhere"], "mirror: nowhere is neither"),
        ("partition", ["--seed", "0", "--spec", "{"], "--spec {"),
        ("partition", ["--seed", "0", "--spec", '{"dataset": "digits"}'], "--spec: clients: Field required"),
        ("partition", ["--seed", "0", "--spec", '{"dataset": "digits", "clients": 2}'], "prepare.py digits"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(tmp_path, program, more, message):
    command = [stand_ins() / "python", PROGRAMS / f"{program}.py", *more, "--data-dir", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and message in done.stderr and done.stderr.count("\n") == 1
