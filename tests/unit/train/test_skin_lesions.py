"""The example of HAM10000 in docs/howto/hospitals.md, word for word: four hospitals, lesions as groups."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedbench
from fedbench.data import datasets
from fedbench.data.datasets._hospitals import LESIONS
from fedbench.data.prepared import load_prepared

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/howto/hospitals.md").read_text(encoding="utf-8")
HOSPITALS = {"rosendahl": 0.15, "vidir_modern": 0.2, "vidir_molemax": 0.02, "vienna_dias": 0.15}


def write_like_it(folder: Path) -> None:
    """Write 600 pictures of 400 lesions with the columns of both files; melanomas are darker."""
    rng = np.random.default_rng(0)
    lesion = np.r_[np.arange(400), rng.integers(400, size=200)]
    of_lesion = rng.choice([*HOSPITALS], size=400)
    ill = rng.random(400) < np.array([HOSPITALS[name] for name in of_lesion])
    facts = {
        "lesion_id": [f"HAM_{number:07}" for number in lesion],
        "image_id": [f"ISIC_{number:07}" for number in range(600)],
        "dx": np.where(ill, "mel", rng.choice(["nv", "bkl"], size=400))[lesion],
        "dx_type": "histo",
        "age": np.where(rng.random(600) < 0.01, np.nan, rng.integers(20, 80, size=600)),
        "sex": rng.choice(["male", "female", "unknown"], size=600),
        "localization": [f"place {number % 15}" for number in range(600)],  # the real files have 15, too
        "dataset": of_lesion[lesion],
    }
    pixels = rng.integers(100, 200, size=(600, 64)) - 60 * ill[lesion][:, None]
    pd.DataFrame(facts).to_csv(folder / LESIONS[0], index=False)
    columns = [f"pixel{number:04}" for number in range(64)]
    pd.DataFrame(pixels, columns=columns).assign(label=0).to_csv(folder / LESIONS[1], index=False)


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Follow the page up to the table, on files like the real ones; returns the facts of each picture."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "config", "config")
    raw = Path("data/raw/ham10000")
    raw.mkdir(parents=True)
    write_like_it(raw)
    section = PAGE[PAGE.index("## A real example with groups") :].partition("\n## ")[0]
    ((path, text),) = re.findall(r"`(config/\S+\.yaml)`:\n\n```yaml\n(.*?)```", section, re.DOTALL)
    Path(path).write_text(text)
    return pd.read_csv(raw / LESIONS[0])


def test_the_page_trains_on_four_hospitals_and_keeps_lesions_together(read: pd.DataFrame) -> None:
    result = fedbench.run("skin/Lesions/p4/LocalSGDM", seeds=[0])
    assert result.metrics["test_auc"] > 0.7
    with_both = read.groupby("dataset")["dx"].apply(lambda dx: (dx == "mel").sum() > 4)
    assert {f"test_auc@{name}" for name in with_both[with_both].index} <= {*result.metrics}
    data = load_prepared("ham10000", "data")
    assert data.sites is not None and {*data.sites} == {*HOSPITALS}
    assert len(data.y_train) + len(data.y_test) == len(read)
    assert data.y_train.sum() + data.y_test.sum() == (read["dx"] == "mel").sum()
    assert data.x_train.shape[1:] == datasets.get("ham10000").shape and data.group_train is not None
    pictures = np.bincount(pd.factorize(read["lesion_id"])[0])
    trained = np.bincount(data.group_train, minlength=len(pictures))
    assert ((trained == 0) | (trained == pictures)).all(), "no lesion is in two parts"
