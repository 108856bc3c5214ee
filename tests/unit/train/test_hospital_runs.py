"""A user's hospitals: notes on their data, the prior of min-max losses, and the example of the documentation."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from sklearn.datasets import load_digits
from toy import AS_IT_IS, BY_SITE, clinic_cells, write_clinic, write_yaml

import fedbench
from fedbench.data import datasets
from fedbench.data.datasets._hospitals import LESIONS
from fedbench.data.partition import make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.errors import UserError
from fedbench.report import described, facts, tables
from fedbench.results.run_facts import REVERSED
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

pytestmark = pytest.mark.usefixtures("project")
ROOT = Path(__file__).parents[3]
ROWS = [f"{n},{'ill' if n % 2 else 'well'},{'Basel' if n < 40 else 'Lyon'}" for n in range(60)]
COUNTED: dict[str, Any] = {
    "title": "Patients", "kind": "facts", "datasets": ["Digits"], "splits": ["Training", "Test"],
    "metrics": ["n_samples", "n_samples@sites", "n_positive@sites"], "rows": ["metric"], "columns": ["split"],
}  # fmt: skip


def dealt(rows: Iterable[str], data: dict[str, Any]) -> list[Cell]:
    """The cells of a table of patients (dose, kind, hospital), prepared and dealt."""
    Path("clinic.csv").write_text("\n".join(["dose,kind,hospital", *rows]))
    keys = "file: clinic.csv\nlabel: kind\npositive: ill\nsite: hospital\nmissing: median\n"
    paper = write_clinic(keys, {"metrics": ["test_auc@sites", "worst_site_test_auc"]}, data)
    paper["tables"]["table2"] = COUNTED
    write_yaml(Path("config/papers/toy.yaml"), paper)
    prepare("clinic", "data")
    result = clinic_cells()
    for run in {cell.runs[0].data.partition_key(cell.runs[0].seed): cell.runs[0] for cell in result}.values():
        make_partition(run.data, run.seed, "data")
    return result


def test_samples_of_each_site_are_counted_and_sites_without_an_auc_are_named() -> None:
    planned = dealt([*ROWS, *(f"{n},well,Kreis" for n in range(25))], BY_SITE | AS_IT_IS)
    counts, worst = described.sites(planned, Path("data"))
    assert counts.endswith("Basel 32 (16) + 8 (4), Kreis 20 (0) + 5 (0), Lyon 16 (8) + 4 (2).")
    assert "over 2 of 3 sites; none of the 5 test samples of Kreis are positive" in worst
    assert described.sites(planned, Path("elsewhere")) == []

    of_data = Plan(load_config(overrides={"data_dir": "data"}), "toy")
    counted = facts.facts_table(of_data, "table2").rows
    values = {(row.metric, row.split): row.value for row in counted.itertuples()}
    expected = {
        ("n_samples", "Training"): 68, ("n_samples", "Test"): 17, ("n_samples@Basel", "Training"): 32,
        ("n_positive@Lyon", "Test"): 2,
    }  # fmt: skip
    assert values.items() >= expected.items()
    facts.export(of_data, "table2")
    shutil.rmtree("data")
    assert facts.facts_table(of_data, "table2").rows.equals(counted)


@pytest.mark.parametrize("n_each", [1, 2])
def test_patients_with_several_samples_are_noted(n_each: int) -> None:
    keys = "file: clinic.csv\nlabel: kind\npositive: ill\nsite: hospital\ngroup: patient\n"
    write_clinic(keys, {"metrics": ["test_auc@sites"]}, BY_SITE | AS_IT_IS)
    rows = [
        f"{n},{'ill' if n // 2 % 2 else 'well'},{'Basel' if n < 40 else 'Lyon'},P{n // n_each}"
        for n in range(80)
    ]
    Path("clinic.csv").write_text("\n".join(["dose,kind,hospital,patient", *rows]))
    assert described.repeated(clinic_cells(), Path("data")) == "", "it is not prepared"
    prepare("clinic", "data")
    said = described.repeated(clinic_cells(), Path("data"))
    assert said == "" if n_each == 1 else said.startswith("Digits: patients have several samples; intervals")


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_imputed_cells_and_a_rare_label_that_dirichlet_gives_to_a_few_clients_are_noted(share: float) -> None:
    doses, ill = ["" if n < 7 else str(n) for n in range(400)], np.arange(400) < 400 * share
    rows = [f"{dose},{'ill' if sick else 'well'},Basel" for dose, sick in zip(doses, ill, strict=True)]
    rule = {"rule": "dirichlet", "delta": 100_000.0}
    lines = described.tasks(dealt(rows, {"clients": 4, "partition": rule, **AS_IT_IS}), Path("data"))
    assert any("dose (7)" in line and "median" in line for line in lines)
    noted = ["2 of 4 clients have no positive sample" in line for line in lines if "`dirichlet`" in line]
    assert noted == [True] * (share < 0.5)


@pytest.mark.parametrize(
    ("rule", "dataset", "labels", "expected"),
    [
        ("by_site", "clinic", "original", "client"),
        ("groups", "clinic", "original", "client"),
        ("theirs", "clinic", "original", "client"),  # of another package
        ("even", "clinic", "original", "pooled"),  # dealt alike
        ("silos", "digits", "original", "pooled"),  # ten classes
        ("silos", "digits", "halves", "client"),
    ],
)
def test_clients_that_may_differ_have_the_mean_of_their_shares(
    rule: str, dataset: str, labels: str, expected: str
) -> None:
    Path("clinic.csv").write_text("\n".join(["dose,kind,hospital", *ROWS]))
    data = AS_IT_IS | {"dataset": dataset, "labels": {"rule": labels}, "partition": {"rule": rule}}
    for entry, prior in (({}, expected), ({"train": {"prior": "pooled"}}, "pooled")):
        write_clinic("file: clinic.csv\nlabel: kind\nsite: hospital\n", {}, data, **entry)
        assert {cell.runs[0].train.prior for cell in clinic_cells()} == {prior}


EIGHTS = {"Basel": (50, 40), "Lyon": (40, 40), "Turin": (30, 30), "Kreiskrankenhaus": (0, 1000)}
"""Positives and negatives of each hospital: pictures of the digit 8, and of others."""
CLINICS = {
    "extends": "localscgdam",
    "title": "My hospitals",
    "datasets": {
        "Scans": {
            "data": {"dataset": "scans", "clients": "sites", "partition": {"rule": "by_site"}},
            "network": {"name": "mlp", "options": {"hidden": [16]}},
            "train": {"batch_size": 16, "evaluations": 1},
        }
    },
    "tables": {
        "table1": {
            "title": "Test AUC", "datasets": ["Scans"], "methods": ["LocalSGDAM"], "settings": {"p": [4]},
            "metrics": ["test_auc"], "rows": ["dataset"], "columns": ["method"], "published": None,
        }
    },
}  # fmt: skip
"""The recipe of docs/howto/hospitals.md."""


def test_hospitals_that_differ_in_their_shares_are_not_reversed() -> None:
    """The same run with the share of all samples together ranks positives below negatives, and a table says so."""
    shutil.copytree(ROOT / "config", "config", dirs_exist_ok=True)
    Path("scans").mkdir()
    digits, rows = load_digits(), ["path,finding,hospital"]
    left = {positive: [*np.flatnonzero((digits.target == 8) == positive)] for positive in (True, False)}
    for hospital, counts in EIGHTS.items():
        for positive, count in zip((True, False), counts, strict=True):
            for _ in range(count):
                at = left[positive].pop()
                Image.fromarray((digits.images[at] * 15).astype("uint8")).save(f"scans/{at}.png")
                rows.append(f"{at}.png,{'tumour' if positive else 'none'},{hospital}")
    Path("scans.csv").write_text("\n".join(rows))
    keys = "images: scans\nsize: [8, 8]\ngrey: true\nlabel: finding\npositive: tumour\nsite: hospital\n"
    Path("config/datasets/scans.yaml").write_text(f"file: scans.csv\n{keys}")
    Path("config/papers/clinics.yaml").write_text(yaml.safe_dump(CLINICS))
    for prior, likely in (("client", True), ("pooled", False)):
        given = {} if likely else {"train.prior": prior}  # the first is the default
        run = fedbench.run("clinics/Scans/p4/LocalSGDAM", seeds=[0], set=given)
        config = load_config(overrides={"paper": "clinics", "set": given, "seeds": [0]})
        shown, scores = tables.table_of(Plan(config), "table1").markdown(), run.metrics
        for score in (scores["test_auc"], scores["train_auc"]):
            assert score > 0.8 if likely else score < 0.3
        assert (REVERSED in shown) == (f"{scores['test_auc']:.3f} (1/1 {REVERSED})" in shown) == (not likely)
        assert ("training data" in shown) == (not likely)


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
    pd.DataFrame(pixels, columns=columns).assign(label=6 * ill[lesion]).to_csv(
        folder / LESIONS[1], index=False
    )


def test_the_page_trains_on_four_hospitals_and_keeps_lesions_together() -> None:
    """Followed up to the table, on files like the real ones."""
    shutil.copytree(ROOT / "config", "config", dirs_exist_ok=True)
    raw = Path("data/raw/ham10000")
    raw.mkdir(parents=True)
    write_like_it(raw)
    section = PAGE[PAGE.index("## A real example with groups") :].partition("\n## ")[0]
    ((path, text),) = re.findall(r"`(config/\S+\.yaml)`:\n\n```yaml\n(.*?)```", section, re.DOTALL)
    Path(path).write_text(text)
    result = fedbench.run("skin/Lesions/p4/LocalSGDM", seeds=[0])
    assert result.metrics["test_auc"] > 0.7

    read, data = pd.read_csv(raw / LESIONS[0]), load_prepared("ham10000", "data")
    with_both = read.groupby("dataset")["dx"].apply(lambda dx: (dx == "mel").sum() > 4)
    assert {f"test_auc@{name}" for name in with_both[with_both].index} <= {*result.metrics}
    assert data.sites is not None and {*data.sites} == {*HOSPITALS}
    assert len(data.y_train) + len(data.y_test) == len(read)
    assert data.y_train.sum() + data.y_test.sum() == (read["dx"] == "mel").sum()
    assert data.x_train.shape[1:] == datasets.get("ham10000").shape and data.group_train is not None
    pictures = np.bincount(pd.factorize(read["lesion_id"])[0])
    trained = np.bincount(data.group_train, minlength=len(pictures))
    assert ((trained == 0) | (trained == pictures)).all(), "no lesion is in two parts"


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("HAM10000_metadata.csv", ("rosendahl", "elsewhere"), "elsewhere"),
        ("HAM10000_metadata.csv", ("dataset", "set"), "no column 'dataset': Kaggle's copy"),
        ("hmnist_8_8_L.csv", None, "not of the same pictures"),
        ("HAM10000_metadata.csv", (",mel,", ",nv,"), "not of the same pictures"),
    ],
)
def test_files_that_are_not_ham10000_are_refused(
    tmp_path: Path, name: str, change: tuple[str, str] | None, told: str
) -> None:
    write_like_it(tmp_path)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.replace(*change) if change else text[: text[:-1].rindex("\n") + 1])
    with pytest.raises(UserError, match=told):
        datasets.get("ham10000").prepare(tmp_path)
