"""Pictures are decoded by several processes, once each however often it is killed; what changed is made again."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from raw_files import encoded, put, put_all, small, zip_of

from fedbench import sealed_json
from fedbench.data import datasets, decoding, files, prepared
from fedbench.data.custom import yaml_dataset
from fedbench.data.datasets._xray import XraySet
from fedbench.data.decoding import Pictures, workplace
from fedbench.data.picture import Form, pixels_of
from fedbench.errors import UserError

COUNT = 12
HEADER = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position\n"
NAMES = [f"{i:08}_000.png" for i in range(1, COUNT + 1)]


def picture(seed: int, width: int = 20, height: int = 16, form: str = "PNG") -> bytes:
    """Large soft spots, as pictures have, and a little noise."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 4), dtype=np.uint8))
    spots = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    pixels = spots + rng.integers(-3, 4, (height, width))
    return encoded(pixels.clip(0, 255).astype(np.uint8), form)


def table_of(finding: str) -> str:
    """The table of twelve X-rays of as many patients; every other one shows the finding."""
    rows = [f"{name},{finding if i % 2 else 'No Finding'},0,{i},58,M,PA\n" for i, name in enumerate(NAMES)]
    return HEADER + "".join(rows)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> XraySet:
    """The twelve X-rays, found by the name of their dataset; each is noted once it is decoded."""
    pictures = {name: picture(i) for i, name in enumerate(NAMES)}
    put_all(tmp_path / "raw/chestxray14", {"Data_Entry_2017.csv": table_of("Edema"), **pictures})
    dataset = small("chestxray14")
    monkeypatch.setattr(datasets, "get", lambda name: dataset)
    monkeypatch.setattr(decoding, "SAVED", 0)
    monkeypatch.setattr(decoding, "_TOGETHER", 1)
    return dataset


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def noted(content: bytes, name: str, form: Form) -> np.ndarray:
        names.append(name)
        return pixels_of(content, name, form)

    monkeypatch.setattr(decoding, "pixels_of", noted)
    return names


def undisturbed(tmp_path: Path) -> bytes:
    return arrays_of(prepared.prepare("chestxray14", tmp_path, force=True))


def arrays_of(path: Path) -> bytes:
    """All arrays, by the path of their summary."""
    return b"".join(file.read_bytes() for file in sorted(path.with_suffix("").glob("*.npy")))


def in_a_child(work: Callable[[], object]) -> int:
    """Run something in a process of its own; return how that ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_a_killed_preparation_goes_on_where_it_was(
    corpus: XraySet, tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        def deadly(content: bytes, name: str, form: Form) -> np.ndarray:
            if name == NAMES[7]:
                os.kill(os.getpid(), signal.SIGKILL)
            return pixels_of(content, name, form)

        monkeypatch.setattr(decoding, "pixels_of", deadly)
        prepared.prepare("chestxray14", tmp_path)

    assert os.WTERMSIG(in_a_child(killed)) == signal.SIGKILL
    path = prepared.prepare("chestxray14", tmp_path)
    first = decoded.copy()
    assert NAMES[7] in first and 3 <= len(first) < COUNT
    assert not [*path.parent.glob(".*.pictures")]
    assert undisturbed(tmp_path) == arrays_of(path)
    assert len(decoded) == len(first) + COUNT


def test_a_preparation_that_is_killed_while_it_ends_decodes_nothing_again(
    corpus: XraySet, tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = undisturbed(tmp_path)
    decoded.clear()

    def killed() -> None:
        monkeypatch.setattr(sealed_json, "write", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        prepared.prepare("chestxray14", tmp_path, force=True)

    assert os.WTERMSIG(in_a_child(killed)) == signal.SIGKILL
    prepared.prepared_path("chestxray14", tmp_path).unlink()
    assert arrays_of(prepared.prepare("chestxray14", tmp_path)) == expected and not decoded


def test_what_was_just_prepared_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 0)
    prepared.prepare("digits", tmp_path)
    monkeypatch.setattr(files, "checksum", lambda path: pytest.fail(f"{path} is read"))
    files._digest.cache_clear()
    assert len(prepared.load_prepared("digits", tmp_path).x_train)


def test_a_broken_picture_costs_nothing_that_was_decoded(
    corpus: XraySet, tmp_path: Path, decoded: list[str]
) -> None:
    place = tmp_path / "raw" / "chestxray14" / NAMES[4]
    content = place.read_bytes()
    place.write_bytes(content[:60])
    with pytest.raises(UserError, match=rf"{NAMES[4]} is not a readable picture"):
        prepared.prepare("chestxray14", tmp_path)
    before = len(decoded) - 1
    assert before >= 3
    place.write_bytes(content)
    prepared.prepare("chestxray14", tmp_path)
    assert sorted(decoded) == sorted([*NAMES, NAMES[4]])


def test_pictures_that_are_written_anew_before_it_goes_on_are_decoded_anew(
    corpus: XraySet, tmp_path: Path
) -> None:
    folder = tmp_path / "raw" / "chestxray14"
    put_all(folder, {NAMES[4]: b"broken"})
    with pytest.raises(UserError, match=rf"{NAMES[4]} is not a readable picture"):
        prepared.prepare("chestxray14", tmp_path)
    put_all(folder, {name: picture(100 + i) for i, name in enumerate(NAMES)})
    assert arrays_of(prepared.prepare("chestxray14", tmp_path)) == undisturbed(tmp_path)


def test_several_processes_make_the_same_bytes(
    corpus: XraySet, tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = undisturbed(tmp_path)
    decoded.clear()
    monkeypatch.setattr(decoding, "_FEW", 0)
    monkeypatch.setattr(decoding, "_TOGETHER", 5)
    path = prepared.prepare("chestxray14", tmp_path, force=True, cores=2)
    assert arrays_of(path) == alone
    assert len(decoded) == 1  # in this process: the only one of the test part


def test_another_zip_of_the_same_name_is_another_source(tmp_path: Path) -> None:
    path, work = tmp_path / "x.zip", tmp_path / "work"
    for seed in (1, 2):
        put(path, zip_of({"a.png": picture(seed)}))
        form = Form((8, 8), grey=True)
        with workplace(work, 1):
            result = Pictures(path).load(["a.png"], form)
        np.testing.assert_array_equal(result[0], pixels_of(picture(seed), "a.png", form))


def test_hidden_files_of_a_zip_are_no_pictures(tmp_path: Path) -> None:
    names = ["x/1.png", "x/.DS_Store", "y/.DS_Store", "__MACOSX/x/._1.png", "./z/2.png"]
    put(tmp_path / "x.zip", zip_of(dict.fromkeys(names, b"1")))
    assert Pictures(tmp_path / "x.zip").names() == ["1.png", "2.png"]


@pytest.mark.parametrize("grey", [True, False])
def test_a_draft_is_nearly_the_same_picture_and_another_definition(tmp_path: Path, grey: bool) -> None:
    large, little = picture(3, 640, 480, "JPEG"), picture(3, 60, 50, "JPEG")  # a half would be too small
    forms = [Form((40, 48), grey, draft) for draft in (False, True)]
    full, draft = (pixels_of(large, "a.jpg", form).astype(int) for form in forms)
    assert full.shape == draft.shape == (1 if grey else 3, 40, 48)
    assert 0 < np.abs(full - draft).mean() < 1 and np.abs(full - draft).max() < 12
    np.testing.assert_array_equal(*(pixels_of(little, "b.jpg", form) for form in forms))

    path = tmp_path / "quick.yaml"
    path.write_text("base: chexpert\noptions: {draft: true}\n")
    quick: Any = yaml_dataset.load_dataset(path, datasets.get)
    assert quick.draft and quick.content() != dataclasses.replace(quick, draft=False).content()
    path.write_text("base: digits\noptions: {draft: true}\n")
    with pytest.raises(UserError, match="unknown option"):
        yaml_dataset.load_dataset(path, datasets.get)


def test_a_disk_that_is_full_is_said_before_a_picture_is_decoded(
    corpus: XraySet, tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoding.files, "_allocate", full)
    with pytest.raises(UserError, match=r"cannot write .*No space left"):
        prepared.prepare("chestxray14", tmp_path)
    assert not decoded and not prepared.prepared_path("chestxray14", tmp_path).exists()


def test_a_raw_file_that_was_changed_counts_and_one_that_was_copied_or_removed_does_not(
    corpus: XraySet, tmp_path: Path
) -> None:
    table = tmp_path / "raw/chestxray14/Data_Entry_2017.csv"
    assert not prepared.current("chestxray14", tmp_path), "nothing is prepared yet"
    path = prepared.prepare("chestxray14", tmp_path)
    before, later = path.read_bytes(), path.stat().st_mtime + 1
    os.utime(table, (later, later))
    assert prepared.prepare("chestxray14", tmp_path).read_bytes() == before

    time.sleep(0.02)  # of a file system's clock
    table.write_text(table_of("Cardiomegaly"))
    os.utime(table, (0, 0))  # a copy that keeps its date, as cp -p makes it
    assert not prepared.current("chestxray14", tmp_path)
    assert prepared.prepare("chestxray14", tmp_path).read_bytes() != before
    table.unlink()
    assert prepared.current("chestxray14", tmp_path)


def test_what_another_version_prepared_or_was_damaged_since_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prepared.prepare("digits", tmp_path)
    sound = prepared.array_path(path, "x_test").read_bytes()
    assert prepared.current("digits", tmp_path)
    monkeypatch.setattr(prepared, "VERSION", prepared.VERSION + 1)
    assert not prepared.current("digits", tmp_path)
    prepared.prepare("digits", tmp_path)
    assert prepared.current("digits", tmp_path)
    for damaged in (path, prepared.array_path(path, "x_test")):
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        assert not prepared.current("digits", tmp_path)
        with pytest.raises(UserError, match=rf"{damaged.name} is (truncated|not what was prepared)"):
            prepared.load_prepared("digits", tmp_path)
        prepared.prepare("digits", tmp_path)
        assert prepared.current("digits", tmp_path)
        assert prepared.array_path(path, "x_test").read_bytes() == sound
