"""Omniglot from its two forms: the official archives, and all images packed."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_files import encoded, put, zip_of

from fedbench.data import datasets
from fedbench.data.datasets import _omniglot as omniglot
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.errors import UserError
from fedbench.spec import DataSpec

CHARACTERS = {"images_background": 9, "images_evaluation": 4}
DRAWINGS = 3
GREEK = [0, 1]
"""Numbers of the background characters of another alphabet."""


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with two small archives in the official layout; their checksums are those of the archives."""
    rng = np.random.default_rng(0)
    mirror = tmp_path / "mirror"
    sums = {}
    for part, number in CHARACTERS.items():
        drawings = {}
        for c, k in itertools.product(range(number), range(DRAWINGS)):
            alphabet = "Greek" if c in GREEK and part == "images_background" else "Latin"
            drawings[f"{part}/{alphabet}/character{c:02}/{c:04}_{k:02}.png"] = encoded(
                rng.random((105, 105)) > 0.2
            )
        content = zip_of(drawings)
        put(mirror / f"{part}.zip", content)
        sums[f"{part}.zip"] = hashlib.md5(content).hexdigest()
    monkeypatch.setattr(omniglot, "_ZIPS", sums)
    return mirror


def packed(mirror: Path, folder: Path) -> Path:
    """Pack the archives' images, in another order."""
    images, paths = omniglot._read(sorted(mirror.glob("*.zip")))
    order = np.random.default_rng(1).permutation(len(paths))
    folder.mkdir()
    np.savez(folder / omniglot.PACKED, images=images[order], path=paths[order])
    return folder


def test_rotations_are_classes_and_characters_groups(archives: Path, tmp_path: Path) -> None:
    prepare("omniglot", tmp_path / "data", str(archives))
    prepared = load_prepared("omniglot", tmp_path / "data")
    assert prepared.x_train.shape == (9 * 4 * 3, 1, 28, 28) and len(prepared.x_test) == 4 * 4 * 3
    assert np.array_equal(np.unique(prepared.y_train), np.arange(36)) and prepared.y_test.min() == 36
    assert prepared.group_train is not None and np.array_equal(prepared.group_train, prepared.y_train // 4)
    upright, turned = (prepared.x_train[prepared.y_train == 4 + turn][:, 0] for turn in (0, 1))
    assert np.array_equal(np.rot90(upright, 1, axes=(1, 2)), turned)
    assert prepared.x_train.mean() > 150  # ink is black on white
    assert prepared.classes[13] == "Latin/character03 turned 90"


def test_both_forms_give_the_same_bytes(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("omniglot", tmp_path / "a", str(archives))
    other = packed(archives, tmp_path / "packed")
    with pytest.raises(UserError, match="its images are not Omniglot's"):
        prepare("omniglot", tmp_path / "b", str(other))
    images, _ = omniglot._read(sorted(archives.glob("*.zip")))
    monkeypatch.setattr(omniglot, "SHA256", hashlib.sha256(images.tobytes()).hexdigest()[:16])
    shutil.copytree(other, tmp_path / "folders/omniglot")
    for name, place in itertools.product(("omniglot", "omniglot_vinyals"), (other, tmp_path / "folders")):
        assert datasets.get(name).status(tmp_path / "b", str(place)).state == "in mirror"
    prepare("omniglot", tmp_path / "b", str(other))
    first, two = (load_prepared("omniglot", tmp_path / name) for name in "ab")
    assert first.summary["sha256"] == two.summary["sha256"]


def test_the_split_of_vinyals_holds_five_alphabets_out_and_tests_on_the_last_characters(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White ink, the same images and classes; what the program leaves is the test part."""
    monkeypatch.setattr(omniglot, "LAST", 3)
    monkeypatch.setattr(omniglot, "HELD_ALPHABETS", ("Greek",))
    for name in ("omniglot", "omniglot_vinyals"):
        prepare(name, tmp_path, str(archives))
    plain, split = (load_prepared(name, tmp_path) for name in ("omniglot", "omniglot_vinyals"))
    assert split.x_train.shape[0] == 10 * 4 * 3 and split.x_test.shape[0] == 3 * 4 * 3
    assert np.array_equal(split.x_train[: len(plain.x_train)], 255 - plain.x_train[:])
    assert np.array_equal(np.unique(split.y_test // 4), [10, 11, 12])
    assert split.held_train is not None and split.group_train is not None
    assert np.array_equal(np.unique(split.y_train[split.held_train] // 4), GREEK)
    assert np.array_equal(np.unique(split.group_train[split.held_train]), GREEK)
    spec = DataSpec(dataset="omniglot_vinyals", clients=3, partition={"rule": "groups"}, validation="own")
    make_partition(spec, 0, tmp_path)
    partition = load_partition(spec, 0, tmp_path)
    assert np.array_equal(np.flatnonzero(split.held_train), np.sort(partition.validation))


def test_the_split_of_vinyals_has_1028_172_and_423_characters() -> None:
    """Of Omniglot's 964 and 659 characters, with those of the alphabets that are held out as its authors list them."""
    held = {"Armenian": 41, "Bengali": 46, "Early_Aramaic": 22, "Hebrew": 22, "Mkhedruli_(Georgian)": 41}
    sizes = {f"images_background/{name}": size for name, size in held.items()}
    sizes |= {"images_background/Latin": 792, "images_evaluation/Tengwar": 659}
    places = [f"{place}/character{n:03}" for place, size in sizes.items() for n in range(size)]
    vinyals: Any = datasets.get("omniglot_vinyals")
    parts = vinyals.parts(np.unique(places))
    assert np.bincount(parts).tolist() == [1028, 172, 423] and (parts[-423:] == omniglot.TEST).all()


def test_without_either_form_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "_FROM", "file:///nowhere")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(UserError, match=r"images_background\.zip.*Or put omniglot28\.npz"):
        prepare("omniglot", tmp_path, str(tmp_path))
