"""The Python functions do what the command line does, and the example notebook runs as it stands."""

from __future__ import annotations

import ast
import math

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import fedbench
from fedbench.errors import UserError
from fedbench.study.cells import Cell
from projects import ROOT, Project

NAME = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"


@pytest.fixture
def in_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(project.root)
    return project


def test_a_run_gives_what_the_store_has_and_is_not_trained_again(in_project: Project) -> None:
    result = fedbench.run(NAME)
    assert list(result.runs["seed"]) == [0, 1] and set(result.runs["status"]) == {"finished"}
    assert result.metrics["test_auc"] == pytest.approx(result.runs["test_auc"].mean())
    for key, seed in zip(result.runs["key"], result.runs["seed"], strict=True):
        stored = pd.read_csv(in_project.root / "results/runs" / key / "curve.csv")
        mine = result.curve[result.curve["seed"] == seed].drop(columns="seed").reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, stored)
        assert stored["test_auc"].iloc[-1] == result.runs.set_index("seed").loc[seed, "test_auc"]
    before = in_project.runs()
    (cell,) = fedbench.cells(NAME)
    again = fedbench.run(cell)
    pd.testing.assert_frame_equal(again.curve, result.curve)
    assert in_project.runs() == before, "taken from the store"


def test_any_place_of_a_run_is_set_as_on_the_command_line(in_project: Project) -> None:
    plain = fedbench.cells(NAME)[0]
    result = fedbench.run(NAME, seeds=[0], set={"train.iterations": 8, "params.lr": 0.01})
    assert result.curve["iteration"].iloc[-1] == 8
    run = result.cell.runs[0]
    assert run.params["lr"] == 0.01 and run.key != plain.runs[0].key
    again = fedbench.run(fedbench.cells(NAME, seeds=[0], set="train.iterations=8,params.lr=0.01")[0])
    assert list(again.runs["key"]) == [run.key]
    diverged = fedbench.run(NAME, seeds=[0], set={"params.lr": 1e30})
    assert list(diverged.runs["status"]) == ["diverged"] and diverged.runs["reason"][0]
    assert diverged.metrics == {}, "a seed that diverged is a row and no part of the mean"


def test_a_metric_that_a_seed_has_not_has_no_mean() -> None:
    cell = Cell(paper="p", scale="s", dataset="d", setting={}, method="m", runs=[])
    known = {"key": "", "status": "finished", "reason": "", "never": None}
    runs = pd.DataFrame(
        [{"seed": 0, "auc": 0.6, "ap": 0.2, **known}, {"seed": 1, "auc": None, "ap": 0.4, **known}]
    )
    metrics = fedbench.Result(cell, runs, pd.DataFrame()).metrics
    assert metrics == pytest.approx({"auc": math.nan, "ap": 0.3, "never": math.nan}, nan_ok=True)


def test_mistakes_are_named(in_project: Project) -> None:
    cell = fedbench.cells(NAME)[0]
    for pattern, given, says in (
        ("p4", {}, r"'p4' fits \d+ cells \(localscgdam/Digits"),
        (NAME, {"seed": [0]}, "unknown key of the configuration 'seed'. Did you mean 'seeds'"),
        (cell, {"scale": "demo"}, "has its scale already"),
        (cell, {"seeds": [5], "set": {"train.iterations": 2}}, "has its seeds and set already"),
    ):
        with pytest.raises(UserError, match=says):
            fedbench.run(pattern, **given)  # type: ignore[arg-type]


def test_the_notebook_runs(in_project: Project) -> None:
    with in_project.edit("config/scales/demo.yaml") as scale:  # the same cells in seconds
        scale["papers"]["localscgdam"]["train"] |= {"iterations": 40, "evaluations": 3}
    notebook = nbformat.read(ROOT / "docs/tutorial/first_steps.ipynb", as_version=4)
    folder = in_project.root / "docs/tutorial"  # where Jupyter and VS Code start it
    folder.mkdir(parents=True, exist_ok=True)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells if cell.get("outputs")]
    scores = ast.literal_eval(shown[2])
    assert scores.keys() == {"LocalSGDM", "LocalSGDAM"} and all(0 < score < 1 for score in scores.values())
    assert "floats_up" in shown[3]
