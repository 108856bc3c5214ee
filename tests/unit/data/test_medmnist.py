"""MedMNIST's files, made small."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.files import checksum
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.errors import UserError
from fedbench.spec import DataSpec

info = pytest.importorskip("medmnist.info")
SIZES = {"train": 40, "val": 10, "test": 20}


def arrays() -> dict[str, Any]:
    """Parts in the published layout; every fifth X-ray shows a mass (finding 4), every second an effusion (2)."""
    rng = np.random.default_rng(0)
    content: dict[str, Any] = {}
    for part, n in SIZES.items():
        labels = np.zeros((n, 14), dtype=np.uint8)
        labels[::5, 4] = labels[::2, 2] = 1
        content[f"{part}_images"] = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        content[f"{part}_labels"] = labels
    return content


Mirror = Callable[..., Path]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """Call it with the name and the arrays of a set to get a mirror with it; medmnist is told its checksum."""

    def make(name: str, content: dict[str, Any]) -> Path:
        flag, _, size = name.partition("_")
        file = tmp_path / "mirror" / f"{name}.npz"
        file.parent.mkdir()
        np.savez(file, **content)
        monkeypatch.setitem(info.INFO[flag], f"MD5_{size}" if size else "MD5", checksum(file, "md5"))
        return file.parent

    return make


def test_chestmnist_has_one_finding_and_an_official_validation_part(mirror: Mirror, tmp_path: Path) -> None:
    made = arrays()
    prepare("chestmnist", tmp_path, mirror("chestmnist", made))
    read = load_prepared("chestmnist", tmp_path)
    np.testing.assert_array_equal(read.x_train[:40, 0], made["train_images"])
    np.testing.assert_array_equal(read.x_train[40:, 0], made["val_images"])
    np.testing.assert_array_equal(read.x_test[:, 0], made["test_images"])
    assert read.held_train is not None and read.held_train.tolist() == [False] * 40 + [True] * 10
    np.testing.assert_array_equal(read.y_train, ([1, 0, 0, 0, 0] * 10))
    imbalance = {"rule": "remove_positives", "share": 0.5}
    spec = DataSpec(dataset="chestmnist", imbalance=imbalance, clients=4, validation="own")
    make_partition(spec, 0, tmp_path)
    partition = load_partition(spec, 0, tmp_path).summary
    counts = [partition[part]["class_counts"] for part in ("train", "validation", "test")]
    assert counts == [{"0": 32, "1": 4}, {"0": 8, "1": 2}, {"0": 16, "1": 4}]


def test_another_finding_is_an_option(mirror: Mirror, tmp_path: Path) -> None:
    dataset: Any = datasets.get("chestmnist")
    folder = dataset.fetch(tmp_path, str(mirror("chestmnist", arrays())))
    assert dataclasses.replace(dataset, finding="effusion").prepare(folder).y_test.tolist() == [1, 0] * 10
    with pytest.raises(UserError, match=r"'efusion'\. Did you mean 'effusion'"):
        dataclasses.replace(dataset, finding="efusion").prepare(folder)


@pytest.mark.parametrize("name", ["breastmnist", "bloodmnist_64"])
def test_every_set_and_size_is_known_by_name(name: str, mirror: Mirror, tmp_path: Path) -> None:
    """Published names and checksums are those of medmnist; colours come to the front, classes are named."""
    flag, _, size = name.partition("_")
    side, rng = int(size or 28), np.random.default_rng(1)
    colours = (3,) if flag == "bloodmnist" else ()
    content: dict[str, Any] = {}
    for part, n in SIZES.items():
        content[f"{part}_images"] = rng.integers(0, 256, (n, side, side, *colours), dtype=np.uint8)
        content[f"{part}_labels"] = (np.arange(n) % 2)[:, None].astype(np.uint8)
    prepare(name, tmp_path, mirror(name, content))
    read = load_prepared(name, tmp_path)
    assert read.x_train.shape == (50, 3 if colours else 1, side, side)
    expected = content["test_images"]
    np.testing.assert_array_equal(read.x_test[:, -1], expected[..., -1] if colours else expected)
    assert read.y_test.tolist() == [0, 1] * 10
    known = info.INFO[flag]["label"]
    assert read.classes == tuple(known[str(c)] for c in range(len(known)))


def test_the_list_is_medmnists_and_listing_imports_it_not() -> None:
    from fedbench.data.datasets._medmnist import SETS, named
    from fedbench.data.datasets._medmnist import SIZES as KNOWN

    flat = {flag: facts for flag, facts in info.INFO.items() if not flag.endswith("3d")}
    assert {flag: (facts["python_class"], facts["n_channels"]) for flag, facts in flat.items()} == SETS
    for flag, facts in flat.items():
        for size in KNOWN:
            dataset = named(flag if size == 28 else f"{flag}_{size}")
            assert dataset is not None
            assert dataset.downloads()[0].urls[0].split("?")[0].endswith(f"{dataset.name}.npz")
            assert dataset.licence.startswith(facts["license"])
    assert named("breastmnist_32") is None and named("mnist") is None
    code = "import sys; from fedbench.data import datasets; datasets.names(); datasets.get('breastmnist'); "
    code += "sys.exit(bool({'torch', 'medmnist'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
