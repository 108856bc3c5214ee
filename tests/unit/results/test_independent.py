"""The programs in examples/ come to the verdicts of fedbench, from the same files and without its code."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from fedbench.results.claims.findings import find
from fedbench.results.compare import comparisons
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

ROOT = Path(__file__).parents[3]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program by its name, run where the files are."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT / "examples")

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


@pytest.mark.parametrize(
    ("study", "scale"), [("localscgdam", "reduced"), ("localscgdam", "paper"), ("climb", "reduced")]
)
def test_every_verdict_beside_print(program: Any, study: str, scale: str) -> None:
    said = program("verdicts").against_print(study, scale)
    plan = Plan(load_config(overrides={"scale": scale}), study)
    assert said == verdicts_of(plan, program("verdicts").norm) and len(said) > 10


def verdicts_of(plan: Plan, norm: Callable[[Any], Any]) -> dict[Any, str]:
    """The verdicts of fedbench on what was shipped at a scale."""
    ours = {}
    for name, spec in plan.study.tables.items():
        if spec.published and spec.kind == "results" and not spec.pool:
            frame = comparisons(plan, spec, plan.cells(name))
            for item in frame[frame["difference"].notna() & (frame["scale"] == plan.scale.name)].itertuples():
                place = tuple(norm(value) for _, value in item.place)
                ours[name, place, item.method, item.metric] = item.verdict
    return ours


EXTENDING = """
extends: localscgdam
title: Mine
methods:
  LocalSGDAM: {params: {lr: 0.02}}
  Mine: {algorithm: local_sgdm, params: {lr: 0.1, momentum: 0.5}}
tables:
  table1: {methods: [LocalSGDAM, LocalSGDM, Mine], settings: {p: [4]}}
  own: {title: Own, datasets: [FashionMNIST], methods: [LocalSGDM, Mine], settings: {p: [4]}, metrics: [test_auc],
    rows: [dataset], columns: [method], published: own.csv}
"""
PRINTED = "dataset,method,metric,p,mean,std,n_seeds,spread\n" + "".join(
    f"FashionMNIST,{method},test_auc,4,{mean},0.002,4,std\n"
    for method, mean in (("LocalSGDM", 0.984), ("Mine", 0.96))
)


def test_every_verdict_of_a_study_that_extends_another(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs: Mine and, with a step of its own, LocalSGDAM; LocalSGDM is that of the study it extends."""
    for name in ("config", "published", "reproduced"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    Path("config/papers/mine.yaml").write_text(EXTENDING)
    Path("published/mine").mkdir()
    Path("published/mine/own.csv").write_text(PRINTED)
    plan = Plan(
        load_config(overrides={"scale": "reduced", "datasets": ["FashionMNIST"], "seeds": "0,1,2,3,4"}),
        "mine",
    )
    runs = pd.read_csv("reproduced/reduced/localscgdam.csv", dtype=str, keep_default_na=False)
    runs = runs[(runs["dataset"] == "FashionMNIST") & (runs["p"] == "4") & (runs["imratio"] == "0.1")]
    parts = []
    for method in ("LocalSGDAM", "Mine"):
        keys = {
            str(run.seed): run.key for run in plan.cell("FashionMNIST", {"p": 4, "imratio": 0.1}, method).runs
        }
        of_method = runs[
            (runs["method"] == "LocalSGDAM") & (runs["metric"] == "test_auc") & (runs["seed"] < "3")
        ]
        of_method = of_method.assign(value=of_method["value"].astype(float) - 0.2)
        parts.append(of_method.assign(method=method, key=of_method["seed"].map(keys)))
    pd.concat(parts).to_csv("reproduced/reduced/mine.csv", index=False)
    said = program("verdicts").against_print("mine", "reduced")
    assert said == verdicts_of(plan, program("verdicts").norm) and len(said) == 4


def test_every_verdict_on_claims_that_compare_methods(program: Any) -> None:
    checked = 0
    for study in ("localscgdam", "climb", "codasca", "cycp", "fcsg"):
        said = program("claims").judge(study, "reduced")
        for finding in find(Plan(load_config(overrides={"scale": "reduced"}), study)):
            (at,) = (at for at in finding.scales if at.scale == "reduced")
            if finding.number in said and at.ran and not at.stand_in and not at.early:
                assert said[finding.number] == at.verdict.kind, (study, finding.number)
                checked += 1
    assert checked >= 10
