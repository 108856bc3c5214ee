"""Omniglot from its two forms: the official archives, and all images packed."""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedbench.data import datasets, download
from fedbench.data.datasets import omniglot
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.errors import UserError
from fedbench.specs import DataSpec

CHARACTERS = {"images_background": 9, "images_evaluation": 4}
DRAWINGS = 3


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with two small archives in the official layout; their checksums are those of the archives."""
    rng = np.random.default_rng(0)
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    sums = {}
    for part, number in CHARACTERS.items():
        path = mirror / f"{part}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for c in range(number):
                for k in range(DRAWINGS):
                    content = io.BytesIO()
                    Image.fromarray(rng.random((105, 105)) > 0.2).save(content, "png")
                    archive.writestr(f"{part}/Latin/character{c:02}/{c:04}_{k:02}.png", content.getvalue())
        sums[path.name] = hashlib.md5(path.read_bytes()).hexdigest()
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
    assert prepared.x_train.shape == (9 * 4 * 3, 1, 28, 28) and prepared.x_test.shape == (
        4 * 4 * 3,
        1,
        28,
        28,
    )
    assert np.array_equal(np.unique(prepared.y_train), np.arange(36)) and prepared.y_test.min() == 36
    assert prepared.group_train is not None and np.array_equal(prepared.group_train, prepared.y_train // 4)
    upright, turned = (prepared.x_train[prepared.y_train == 4 + turn][:, 0] for turn in (0, 1))
    assert np.array_equal(np.rot90(upright, 1, axes=(1, 2)), turned)
    assert prepared.x_train.mean() > 150  # ink is black on white
    assert prepared.classes[5] == "Latin/character01 turned 90"


def test_both_forms_give_the_same_bytes(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("omniglot", tmp_path / "a", str(archives))
    other = packed(archives, tmp_path / "packed")
    with pytest.raises(UserError, match="its images are not Omniglot's"):
        prepare("omniglot", tmp_path / "b", str(other))
    images, _ = omniglot._read(sorted(archives.glob("*.zip")))
    monkeypatch.setattr(omniglot, "SHA256", hashlib.sha256(images.tobytes()).hexdigest()[:16])
    assert datasets.get("omniglot").status(tmp_path / "b", str(other)).state == "in mirror"
    prepare("omniglot", tmp_path / "b", str(other))
    first, two = (load_prepared("omniglot", tmp_path / name) for name in "ab")
    assert first.summary["sha256"] == two.summary["sha256"]


def test_a_character_is_with_one_client_or_held_out(archives: Path, tmp_path: Path) -> None:
    spec = DataSpec(dataset="omniglot", clients=3, partition={"rule": "groups"}, validation=0.25)
    prepare("omniglot", tmp_path, str(archives))
    make_partition(spec, 0, tmp_path)
    partition, character = load_partition(spec, 0, tmp_path), load_prepared("omniglot", tmp_path).y_train // 4
    owners = [set(character[partition.client(k)].tolist()) for k in range(3)] + [
        set(character[partition.validation].tolist())
    ]
    assert sorted(map(len, owners)) in ([2, 2, 2, 3], [2, 2, 3, 2]) and len(set().union(*owners)) == 9
    assert sum(map(len, owners)) == 9


def test_without_either_form_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "_FROM", "file:///nowhere")
    monkeypatch.setattr(download, "download", functools.partial(download.download, attempts=1))
    with pytest.raises(UserError, match=r"images_background\.zip.*Or put omniglot28\.npz"):
        prepare("omniglot", tmp_path, str(tmp_path))
