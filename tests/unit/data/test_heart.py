"""Heart Disease is read from files in UCI's format: four hospitals, what was not measured is not 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.datasets._hospitals import FILES
from fedbench.errors import UserError

ROW = "{age},{sex},{kind},{pressure},{chol},0,{rest},150,0,{peak},{slope},{ca},{thal},{num}"


def write(folder: Path, name: str, n: int = 40, decimals: str = "") -> None:
    """Write patients of whom every other is diseased; every fifth has no cholesterol."""
    rows = [
        ROW.format(
            age=f"{30 + i}{decimals}",
            sex=i % 2,
            kind=1 + i % 4,
            pressure=0 if i == 3 else 120 + i,
            chol="?" if i % 10 == 1 else 0 if i % 10 == 6 else 200 + i,
            rest="?" if i % 7 == 2 else i % 3,
            peak=i % 4 / 2,
            slope="?" if i % 4 == 0 else 1 + i % 3,
            ca="?" if i % 3 else 1,
            thal="?" if i % 7 == 5 else (3, 6, 7)[i % 3],
            num=(0, 1 + i % 4)[i % 2],
        )
        for i in range(n)
    ]
    (folder / name).write_text("\n".join(rows) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place, (name, _) in enumerate(FILES.values()):
        write(tmp_path, name, 20 + 20 * place, ".0" if place == 1 else "")
    return tmp_path


def test_each_patient_keeps_hospital_and_diagnosis(folder: Path) -> None:
    prepared = datasets.get("heart").prepare(folder)
    assert prepared.x_train.shape[1:] == datasets.get("heart").shape and np.isfinite(prepared.x_train).all()
    assert (
        prepared.sites
        == datasets.site_names(["heart"])
        == ("Budapest", "Cleveland", "Long Beach", "Switzerland")
    )
    assert prepared.site_train is not None and prepared.site_test is not None
    assert np.bincount(prepared.site_test).tolist() == [4, 8, 12, 16]
    assert all(prepared.y_test[prepared.site_test == k].mean() == 0.5 for k in range(4))
    assert len(prepared.y_train) + len(prepared.y_test) == 20 + 40 + 60 + 80
    kinds = np.concatenate([prepared.x_train, prepared.x_test])[:, 9:]
    assert {*np.unique(kinds)} == {0.0, 1.0} and (kinds.sum(1) == 4).all()  # one of each of four columns
    np.testing.assert_allclose(prepared.x_train[:, :9].mean(0), 0, atol=1e-5)


def test_zero_and_a_question_mark_are_the_median_of_what_was_measured(folder: Path) -> None:
    prepared = datasets.get("heart").prepare(folder)
    assert any("trestbps (4), chol (40)" in note for note in prepared.notes)
    chol = prepared.x_train[:, 4]
    assert chol.min() > -3  # a 0 among values of 200 would lie far below


def test_a_file_that_is_cut_is_named(folder: Path) -> None:
    name = FILES["Switzerland"][0]
    (folder / name).write_text("63,1,1,145,233,1,2,150\n")
    with pytest.raises(UserError, match=rf"{name} has a row without a diagnosis"):
        datasets.get("heart").prepare(folder)
