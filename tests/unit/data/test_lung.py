"""Lung cancer is read from the package that brings it, in both editions of its file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.datasets._hospitals import LARGE, REST
from fedbench.errors import UserError

HEADER = "inst,time,status,age,sex,ph.ecog,ph.karno,pat.karno,meal.cal,wt.loss"


def write(folder: Path, alive: int = 0) -> None:
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
    write(tmp_path, alive)
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
    if not lung.sources(tmp_path):
        with pytest.raises(UserError, match="pip install --no-deps lifelines"):
            lung.prepare(tmp_path / "raw")
    write(tmp_path / "lifelines" / "datasets")
    (tmp_path / "lifelines" / "__init__.py").write_text("raise ImportError('it needs an older pandas')")
    assert lung.sources(tmp_path / "raw") == [tmp_path / "lifelines/datasets/lung.csv"]
    assert len(lung.prepare(tmp_path / "raw").y_test) and "lifelines" not in sys.modules
