"""Heart Disease and Lung cancer in the formats of their sources: what was not measured is not 0."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.datasets._hospitals import FILES, LARGE, REST
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
    assert prepared.sites == datasets.site_names(["heart"]) == tuple(FILES)
    assert prepared.site_train is not None and prepared.site_test is not None
    assert np.bincount(prepared.site_test).tolist() == [4, 8, 12, 16]
    assert all(prepared.y_test[prepared.site_test == k].mean() == 0.5 for k in range(4))
    assert len(prepared.y_train) + len(prepared.y_test) == 20 + 40 + 60 + 80
    kinds = np.concatenate([prepared.x_train, prepared.x_test])[:, 9:]
    assert {*np.unique(kinds)} == {0.0, 1.0} and (kinds.sum(1) == 4).all()  # one of each of four columns
    np.testing.assert_allclose(prepared.x_train[:, :9].mean(0), 0, atol=1e-5)
    assert any("trestbps (4), chol (40)" in note for note in prepared.notes)
    assert prepared.x_train[:, 4].min() > -3, (
        "a cholesterol of 0 was not measured: among 200 it would lie far below"
    )


HEADER = "inst,time,status,age,sex,ph.ecog,ph.karno,pat.karno,meal.cal,wt.loss"


def write_lung(folder: Path, alive: int = 0) -> None:
    """Write twelve patients of each of eleven institutions: a third dies early, a third late, a third is lost early."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [",400,1,60,1,1.0,80.0,80.0,900.0,3.0".replace(",1,", f",{alive + 1},", 1)]
    for institution in (*LARGE, "33", "2"):
        for i in range(12):
            time, dead = ((100, 1), (500, 1), (170, 0))[i % 3]
            meal = "" if i % 5 == 2 else f"{900 + i}.0"
            rows.append(f"{institution}.0,{time},{alive + dead},{60 + i},{1 + i % 2},1.0,80.0,,{meal},{i}.0")
    (folder / "lung.csv").write_text("\n".join([HEADER, *rows]) + "\n")


@pytest.mark.parametrize("alive", [0, 1])
def test_half_a_year_is_the_label_and_who_was_lost_before_is_left_out(tmp_path: Path, alive: int) -> None:
    write_lung(tmp_path, alive)
    read = datasets.get("lung").prepare(tmp_path)
    y, site = np.concatenate([read.y_train, read.y_test]), np.concatenate([read.site_train, read.site_test])  # type: ignore[arg-type, list-item]
    assert len(y) == 11 * 8 and y.mean() == 0.5
    assert np.bincount(site).tolist() == [8] * len(LARGE) + [16], "small institutions are one site"
    assert read.sites == datasets.site_names(["lung"]) and read.sites[-1] == REST
    assert np.isfinite(read.x_train).all() and read.x_train.shape[1:] == datasets.get("lung").shape
    np.testing.assert_allclose(read.x_train.mean(0), 0, atol=1e-5)


def test_it_is_found_in_the_installed_package_which_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    lung = datasets.get("lung")
    if find_spec("lifelines") is None:
        status = lung.status(tmp_path)
        assert status.state == "unavailable" and "pip install --no-deps lifelines" in status.detail
        with pytest.raises(UserError, match="pip install --no-deps lifelines"):
            lung.prepare(tmp_path / "raw")
    write_lung(tmp_path / "lifelines" / "datasets")
    (tmp_path / "lifelines" / "__init__.py").write_text("raise ImportError('it needs an older pandas')")
    assert lung.sources(tmp_path / "raw") == [tmp_path / "lifelines/datasets/lung.csv"]
    assert len(lung.prepare(tmp_path / "raw").y_test) and "lifelines" not in sys.modules
