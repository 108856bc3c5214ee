"""The real sets have the sizes that the papers print. FEDBENCH_TEST_MIRROR: a folder or address with them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from raw_files import put

from fedbench.data import datasets
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.spec import DataSpec

MIRROR = os.environ.get("FEDBENCH_TEST_MIRROR")
pytestmark = pytest.mark.skipif(not MIRROR, reason="FEDBENCH_TEST_MIRROR names no mirror")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


def needs(name, folder):
    """Skip the test if the mirror is a folder without this set."""
    if MIRROR and not MIRROR.startswith("http"):
        status = datasets.get(name).status(folder, MIRROR)
        if status.state not in ("in mirror", "raw present", "prepared"):
            pytest.skip(f"the mirror has no {name}")


@pytest.mark.parametrize(
    "name, train, test, per_class, negative, positive",
    [
        ("mnist", 60_000, 10_000, None, None, None),
        ("fashionmnist", 60_000, 10_000, 6_000, 30_000, 3_333),
        ("cifar10", 50_000, 10_000, 5_000, 25_000, 2_777),
        ("cifar100", 50_000, 10_000, 500, 25_000, 2_777),
    ],
)
def test_sizes(folder, name, train, test, per_class, negative, positive):
    needs(name, folder)
    prepare(name, folder, MIRROR)
    arrays = load_prepared(name, folder)
    assert arrays.x_train.shape == (train, *datasets.get(name).shape) and arrays.x_train.dtype == np.uint8
    assert len(arrays.x_test) == test and arrays.x_train.max() == 255
    if per_class is None:
        assert np.bincount(arrays.y_train)[:3].tolist() == [5_923, 6_742, 5_958]
        return
    assert np.bincount(arrays.y_train).tolist() == [per_class] * len(arrays.classes)
    imbalance = {"rule": "drop_positives", "imratio": 0.1}
    spec = DataSpec(dataset=name, labels={"rule": "halves"}, imbalance=imbalance, clients=4)
    make_partition(spec, 0, folder)
    partition = load_partition(spec, 0, folder)
    assert partition.summary["train"]["class_counts"] == {"0": negative, "1": positive}
    assert partition.summary["test"]["class_counts"] == {"0": test // 2, "1": test // 2}
    assert all(abs(counts[1] - positive / 4) < 1 for counts in partition.summary["class_counts"])


@pytest.mark.parametrize(
    "name, share, train, validation, test",
    [
        ("cifar10", 0.95, (40_500, 225), (4_500, 500), (9_000, 1_000)),
        ("cifar100", 0.5, (44_550, 225), (4_950, 50), (9_900, 100)),
    ],
)
def test_one_class_against_the_rest(folder, name, share, train, validation, test):
    """cycp's Table 7 up to a few samples: the paper's tenth is not stratified."""
    needs(name, folder)
    prepare(name, folder, MIRROR)
    spec = DataSpec(
        dataset=name, labels={"rule": "named", "positive": [0]}, clients=100, validation=0.1, validation_of="all",
        imbalance={"rule": "remove_positives", "share": share}, partition={"rule": "class_dirichlet", "delta": 0.1},
    )  # fmt: skip
    make_partition(spec, 0, folder)
    partition = load_partition(spec, 0, folder).summary
    counts = [tuple(partition[part]["class_counts"].values()) for part in ("train", "validation", "test")]
    assert counts == [train, validation, test] and min(partition["sizes"]) >= 8


def test_the_labels_of_chestxray14_give_the_shares_that_codasca_prints(tmp_path):
    """Its Table 5 (ChestXray8) from the real labels, without pictures: ``chestxray14_labels.npz`` in the mirror."""
    path = Path(MIRROR or "") / "chestxray14_labels.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    with np.load(path) as caught:
        images = np.concatenate([caught[f"{part}_image_index"] for part in ("train", "val", "test")])
        labels = np.concatenate([caught[f"{part}_labels"] for part in ("train", "val", "test")]).astype(bool)
        official = {"pleural": "Pleural_Thickening"}
        words = [official.get(name, name.capitalize()) for name in caught["label_names"]]
        names = np.array(words, dtype=object)
    rows = ["Image Index,Finding Labels,Patient ID"]
    for image, row in zip(images.astype(str), labels, strict=True):
        rows.append(f"{image},{'|'.join(names[row]) or 'No Finding'},{int(image[:8])}")
    put(tmp_path / "raw/chestxray14/Data_Entry_2017.csv", "\n".join([*rows, ""]).encode())
    counts = datasets.get("chestxray14").count_labels(tmp_path)
    assert counts is not None and sum(counts.values()) == 112_120
    shares = {
        finding: sum(n for name, n in counts.items() if finding in name.split("+")) / 112_120
        for finding in ("cardiomegaly", "edema", "consolidation", "atelectasis", "effusion")
    }
    assert [round(share, 3) for share in shares.values()] == [0.025, 0.021, 0.042, 0.103, 0.119]
