"""Arrays are prepared again once the raw files or the rule they were made by are others, or they are damaged."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from test_decoding import NAMES, picture
from xray_corpora import put, small

from fedbench.data import datasets, prepared

HEADER = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position\n"


def rows(finding: str) -> str:
    return HEADER + "".join(
        f"{name},{finding if i % 2 else 'No Finding'},0,{i},58,M,PA\n" for i, name in enumerate(NAMES)
    )


def written_later(path: Path, than: Path) -> None:
    when = than.stat().st_mtime + 1
    os.utime(path, (when, when))


def test_a_raw_file_that_was_changed_counts_and_one_that_was_copied_or_removed_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, folder = small("chestxray14"), tmp_path / "raw" / "chestxray14"
    monkeypatch.setattr(datasets, "get", lambda name: dataset)
    table = folder / "Data_Entry_2017.csv"
    put(folder, {table.name: rows("Edema")} | {name: picture(i) for i, name in enumerate(NAMES)})
    assert not prepared.outdated("chestxray14", tmp_path), "nothing is prepared yet"
    path = prepared.prepare("chestxray14", tmp_path)
    before, summary = path.read_bytes(), path.with_suffix(".json")
    written_later(table, summary)
    assert not prepared.outdated("chestxray14", tmp_path)
    assert prepared.prepare("chestxray14", tmp_path).read_bytes() == before

    time.sleep(0.02)  # of a file system's clock
    table.write_text(rows("Cardiomegaly"))
    os.utime(table, (0, 0))  # a copy that keeps its date, as cp -p makes it
    assert prepared.outdated("chestxray14", tmp_path)
    assert prepared.prepare("chestxray14", tmp_path).read_bytes() != before
    assert not prepared.outdated("chestxray14", tmp_path)

    table.unlink()
    assert not prepared.outdated("chestxray14", tmp_path)


def test_what_another_version_prepared_or_was_damaged_since_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prepared.prepare("digits", tmp_path)
    sound = prepared.array_path(path, "x_test").read_bytes()
    assert not prepared.outdated("digits", tmp_path)
    monkeypatch.setattr(prepared, "VERSION", prepared.VERSION + 1)
    assert prepared.outdated("digits", tmp_path)
    prepared.prepare("digits", tmp_path)
    assert not prepared.outdated("digits", tmp_path)
    for damaged in (path, prepared.array_path(path, "x_test")):
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        assert prepared.outdated("digits", tmp_path)
        prepared.prepare("digits", tmp_path)
        assert not prepared.outdated("digits", tmp_path)
        assert prepared.array_path(path, "x_test").read_bytes() == sound
