"""Partitions on disk, and the programs that the workflow runs to make them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedbench.data.partition import Partition, load_partition, make_partition, partition_path
from fedbench.data.prepared import load_prepared, prepare, prepared_path, write_prepared
from fedbench.errors import UserError
from fedbench.spec import DataSpec, LabelSpec
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


RARE = {
    "dataset": "digits",
    "labels": {"rule": "named", "positive": [3]},
    "imbalance": {"rule": "remove_positives", "share": 0.5},
    "clients": 4,
    "validation": 0.1,
    "validation_of": "all",
}


def rare(folder: Path, seed: int = 0, **changed: object) -> Partition:
    """One class against the rest, with half of its samples; the argument ``seed`` is the run's."""
    return made(DataSpec(**RARE | changed), seed, folder)


def test_validation_is_held_out_before_the_removal(folder):
    positive = int((load_prepared("digits", folder).y_train == 3).sum())
    held = round(0.1 * positive)
    before, after = rare(folder).summary, rare(folder, validation_of="kept").summary
    assert before["validation"]["class_counts"]["1"] == held
    assert before["train"]["class_counts"]["1"] == (positive - held) // 2
    assert after["validation"]["class_counts"]["1"] == round(0.1 * (positive // 2)) < held
    assert before["validation"]["class_counts"]["0"] == after["validation"]["class_counts"]["0"]
    with pytest.raises(UserError, match="digits comes without a validation part of its own"):
        rare(folder, validation="own")


def test_flips_touch_the_clients_alone(folder):
    classes = load_prepared("digits", folder)
    rule = {"rule": "named", "positive": [3]}
    clean, noisy = (rare(folder, labels=rule | {"flip": share}) for share in (0, 0.2))
    n = clean.summary["train"]["class_counts"]["1"]
    assert noisy.summary["train"]["class_counts"]["1"] == n - n // 5
    np.testing.assert_array_equal(noisy.validation, clean.validation)
    np.testing.assert_array_equal(noisy.y_train[noisy.validation], classes.y_train[noisy.validation] == 3)
    np.testing.assert_array_equal(noisy.y_test, classes.y_test == 3)
    np.testing.assert_array_equal(np.sort(noisy.indices), np.sort(clean.indices))


def test_a_seed_of_the_data_fixes_them_for_every_run(folder):
    assert len({partition_path(DataSpec(**RARE | {"draw": 7}), seed, folder) for seed in range(3)}) == 1
    runs = [rare(folder, seed, draw=7).indices for seed in range(3)]
    assert (runs[0] == runs[1]).all() and (runs[0] == runs[2]).all()
    np.testing.assert_array_equal(runs[0], rare(folder, 7).indices)  # what a run of seed 7 would draw
    assert set(runs[0]) != set(rare(folder, 1, draw=8).indices)


def test_an_official_validation_part_is_that_or_nothing(own_data, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    prepare(own_data(x=rng.normal(size=(300, 2)), y=y), tmp_path)
    path, held = prepared_path("mine", tmp_path), rng.random(240) < 0.2
    read = load_prepared("mine", tmp_path)
    arrays = {part: getattr(read, part) for part in read.summary["arrays"]}
    write_prepared(path, arrays | {"held_train": held}, read.summary)

    labels = {"rule": "named", "positive": [0]}
    for validation in ("own", 0.0, 0.1):
        spec = DataSpec(dataset="mine", labels=labels, clients=3, validation=validation)
        result = made(spec, 0, tmp_path)
        assert validation != "own" or result.validation.tolist() == np.flatnonzero(held).tolist()
        left = np.setdiff1d(np.flatnonzero(~held), result.validation)
        np.testing.assert_array_equal(np.sort(result.indices), left)


@pytest.mark.parametrize(("sign", "lacking"), [(0, "positive"), (1, "negative")])
def test_a_part_of_one_class_is_named_before_training(own_data, tmp_path, sign, lacking):
    x = np.arange(180.0)[:, None]
    y, rare = np.arange(120) % 2, np.where(np.arange(120) % 30, sign, 1 - sign)
    own_data("tested", x=x[:120], y=y, x_test=x[120:], y_test=np.full(60, sign))
    own_data("held", x=x[:120], y=rare, x_test=x[120:], y_test=y[:60])
    for name in ("tested", "held"):
        prepare(name, tmp_path)
    lacks = f"part has no {lacking} sample: an AUC needs both"
    for labels in (LabelSpec(rule="named", positive=(1,)), LabelSpec()):
        with pytest.raises(UserError, match=f"tested: the test {lacks}"):
            make_partition(DataSpec(dataset="tested", clients=2, labels=labels), 0, tmp_path)
    make_partition(DataSpec(dataset="held", clients=2, validation=0.25), 0, tmp_path)
    # a tenth of four is none
    with pytest.raises(UserError, match=rf"validation {lacks}; raise data\.validation"):
        make_partition(DataSpec(dataset="held", clients=2, validation=0.1), 0, tmp_path)


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
