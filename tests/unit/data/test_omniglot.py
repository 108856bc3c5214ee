"""Omniglot from its two forms: the official archives, and all images packed."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
    mirror.mkdir()
    sums = {}
    for part, number in CHARACTERS.items():
        path = mirror / f"{part}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for c in range(number):
                for k in range(DRAWINGS):
                    content = io.BytesIO()
                    Image.fromarray(rng.random((105, 105)) > 0.2).save(content, "png")
                    alphabet = "Greek" if c in GREEK and part == "images_background" else "Latin"
                    archive.writestr(
                        f"{part}/{alphabet}/character{c:02}/{c:04}_{k:02}.png", content.getvalue()
                    )
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
    assert datasets.get("omniglot").status(tmp_path / "b", str(other)).state == "in mirror"
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
    """Numbers of characters of Omniglot's alphabets as its authors list them."""
    sizes = {
        "background": {
            "Alphabet_of_the_Magi": 20, "Anglo-Saxon_Futhorc": 29, "Arcadian": 26, "Armenian": 41,
            "Asomtavruli_(Georgian)": 40, "Balinese": 24, "Bengali": 46,
            "Blackfoot_(Canadian_Aboriginal_Syllabics)": 14, "Braille": 26, "Burmese_(Myanmar)": 34,
            "Cyrillic": 33, "Early_Aramaic": 22, "Futurama": 26, "Grantha": 43, "Greek": 24, "Gujarati": 48,
            "Hebrew": 22, "Inuktitut_(Canadian_Aboriginal_Syllabics)": 16, "Japanese_(hiragana)": 52,
            "Japanese_(katakana)": 47, "Korean": 40, "Latin": 26, "Malay_(Jawi_-_Arabic)": 40,
            "Mkhedruli_(Georgian)": 41, "N_Ko": 33, "Ojibwe_(Canadian_Aboriginal_Syllabics)": 14,
            "Sanskrit": 42, "Syriac_(Estrangelo)": 23, "Tagalog": 17, "Tifinagh": 55,
        },
        "evaluation": {
            "Angelic": 20, "Atemayar_Qelisayer": 26, "Atlantean": 26, "Aurek-Besh": 26, "Avesta": 26,
            "Ge_ez": 26, "Glagolitic": 45, "Gurmukhi": 45, "Kannada": 41, "Keble": 26, "Malayalam": 47,
            "Manipuri": 40, "Mongolian": 30, "Old_Church_Slavonic_(Cyrillic)": 45, "Oriya": 46, "Sylheti": 28,
            "Syriac_(Serto)": 23, "Tengwar": 25, "Tibetan": 42, "ULOG": 26,
        },
    }  # fmt: skip
    paths = np.unique(
        [
            f"images_{part}/{alphabet}/character{number:02}"
            for part, alphabets in sizes.items()
            for alphabet, size in alphabets.items()
            for number in range(1, size + 1)
        ]
    )
    assert len(paths) == 1623
    parts = omniglot.DATASETS[1].parts(paths)
    assert np.bincount(parts).tolist() == [1028, 172, 423]
    tested = [path.split("/", 1)[1] for path in paths[parts == omniglot.TEST]]
    assert tested[0] == "Gurmukhi/character42" and tested[4] == "Kannada/character01"


def test_without_either_form_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "_FROM", "file:///nowhere")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(UserError, match=r"images_background\.zip.*Or put omniglot28\.npz"):
        prepare("omniglot", tmp_path, str(tmp_path))
