"""What is wrong with a corpus of chest X-rays is named; large ones are mapped from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from xray_corpora import chexpert, nih, png, put, small

from fedbench.data import datasets, prepared
from fedbench.data.datasets._xray import drawn
from fedbench.errors import UserError

CORPORA = ("chexpert", "chexpert_valid", "chestxray14", "padchest", "mimic_cxr", "chestxray_ad")


def without_a_picture(files: dict[str, str | bytes]) -> None:
    del files["images_001/images/00000001_000.png"]


def with_a_broken_picture(files: dict[str, str | bytes]) -> None:
    files["images_001/images/00000001_000.png"] = png(5)[:40]


def change(old: str, new: str) -> Callable[[dict[str, str | bytes]], None]:
    def apply(files: dict[str, str | bytes]) -> None:
        files["table"] = str(files["table"]).replace(old, new)

    return apply


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (
            without_a_picture,
            r"lacks 1 of the 3 pictures that Data_Entry_2017\.csv lists, e\.g\. 00000001_000\.png",
        ),
        (with_a_broken_picture, r"00000001_000\.png is not a readable picture"),
        (change("Patient ID", "Patient"), r"Data_Entry_2017\.csv has no column 'Patient ID'"),
        (change("Effusion", "Efusion"), r"unknown finding 'Efusion'\. Did you mean 'Effusion'"),
        (
            change("00000001_001.png", "00000001_000.png"),
            r"Data_Entry_2017\.csv lists 00000001_000\.png twice",
        ),
        (change(",2,80", ",1,80"), "a test part of whole patients needs two patients"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, slip: Callable[[Any], None], said: str) -> None:
    files = nih("Patient Gender,View Position")
    slip(files)
    put(tmp_path, {"Data_Entry_2017.csv": files.pop("table"), **files})
    with pytest.raises(UserError, match=said):
        small("chestxray14").prepare(tmp_path)


def test_a_label_that_means_nothing_is_named(tmp_path: Path) -> None:
    files = chexpert(tmp_path)
    files["train.csv"] = (
        str(files["train.csv"]).replace("1.0,-1.0,,,0.0", "1.0,2,,,0.0").replace("1.0,,,-1.0", "1.0,,,2")
    )
    put(tmp_path, files)
    with pytest.raises(
        UserError, match=r"train\.csv, column 'Edema': label '2' is none of 1, 0, -1 and blank"
    ):
        small("chexpert").studies(tmp_path)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_that_is_not_there_says_what_to_get_and_where_to_put_it(tmp_path: Path, name: str) -> None:
    dataset = datasets.get(name)
    status = dataset.status(tmp_path)
    assert status.state == "needs account"
    assert "https://" in status.detail and str(dataset.raw_dir(tmp_path)) in status.detail
    with pytest.raises(UserError, match=r"download|ask for"):
        prepared.prepare(name, tmp_path)


def test_test_patients_are_the_same_each_time_and_about_the_share() -> None:
    patients = pd.Series(np.repeat([f"p{i:03}" for i in range(200)], np.arange(200) % 5 + 1))
    chosen = drawn(patients, 0.05, "corpus")
    assert patients[chosen].nunique() == 10 and (chosen == drawn(patients, 0.05, "corpus")).all()
    assert not set(patients[chosen]) & set(patients[~chosen])
    assert (drawn(patients, 0.05, "another") != chosen).any()


def test_inputs_are_mapped_and_hold_what_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = nih("Patient Gender,View Position")
    put(tmp_path / "raw" / "chestxray14", {"Data_Entry_2017.csv": files.pop("table"), **files})
    dataset = small("chestxray14")
    monkeypatch.setattr(datasets, "get", lambda name: dataset)
    path = prepared.prepare("chestxray14", tmp_path)
    mapped = prepared.load_prepared("chestxray14", tmp_path)
    assert isinstance(mapped.x_train, np.memmap) and isinstance(mapped.x_test, np.memmap)
    assert not mapped.x_train.flags.writeable
    for part in ("x_train", "x_test", "y_train", "y_test", "group_train"):
        np.testing.assert_array_equal(getattr(mapped, part), np.load(prepared.array_path(path, part)))
