"""Which share of positives min-max losses take where no YAML names one, and what the other does in hospitals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from sklearn.datasets import load_digits

import fedbench
from fedbench.report import tables
from fedbench.results.degenerate_runs import REVERSED
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

CONFIG = Path(__file__).parents[3] / "config"
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


@pytest.fixture(autouse=True)
def clinics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of four hospitals, the largest of which has no positives."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CONFIG, "config")
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


def plan(**at: Any) -> Plan:
    return Plan(load_config(overrides={"paper": "clinics", "set": at, "seeds": [0]}))


def prior(**at: Any) -> str:
    """The prior of a run whose places are set, ``_`` for a dot."""
    given = {place.replace("_", "."): value for place, value in at.items()}
    return plan(**given).cells()[0].runs[0].train.prior


def test_hospitals_that_differ_in_their_shares_are_not_reversed() -> None:
    """The same run with the share of all samples together ranks positives below negatives, and a table says so."""
    scans = "clinics/Scans/p4/LocalSGDAM"
    client = fedbench.run(scans, seeds=[0])
    assert client.metrics["test_auc"] > 0.8 and client.metrics["train_auc"] > 0.8
    assert REVERSED not in tables.table_of(plan(), "table1").markdown()
    pooled = fedbench.run(scans, seeds=[0], set={"train.prior": "pooled"})
    assert pooled.metrics["test_auc"] < 0.3 and pooled.metrics["train_auc"] < 0.3
    text = tables.table_of(plan(**{"train.prior": "pooled"}), "table1").markdown()
    assert f"{pooled.metrics['test_auc']:.3f} (1/1 {REVERSED})" in text and "training data" in text


@pytest.mark.parametrize("rule", ["by_site", "sites", "groups", "by_group", "silos", "dirichlet", "theirs"])
def test_clients_that_may_differ_have_the_mean_of_their_shares(rule: str) -> None:
    assert prior(data_partition_rule=rule) == "client"
    assert prior(data_partition_rule=rule, train_prior="pooled") == "pooled", (
        "where a YAML or a call names it"
    )


def test_clients_that_are_dealt_alike_or_several_classes_keep_theirs_and_their_keys() -> None:
    assert prior(data_partition_rule="even", data_clients=4) == "pooled"
    digits = {"data_dataset": "digits", "data_partition_rule": "silos", "data_clients": 4}
    assert prior(**digits) == "pooled", "ten classes"
    assert prior(**digits, data_labels_rule="halves") == "client"
