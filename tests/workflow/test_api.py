"""The Python functions do what the command line does, and the example notebook runs as it stands."""

from __future__ import annotations

import ast
import subprocess
import sys

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import fedbench
from fedbench.errors import UserError
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


def test_a_diverged_seed_is_a_row_and_no_part_of_the_mean(in_project: Project) -> None:
    with in_project.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["params"]["lr"] = 1e30
    result = fedbench.run(NAME, seeds=[0])
    assert list(result.runs["status"]) == ["diverged"] and result.runs["reason"][0]
    assert result.metrics == {}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fedbench.run("p4"), r"'p4' fits \d+ cells \(localscgdam/Digits"),
        (lambda: fedbench.run("LocalSGDX"), "no cell matches 'LocalSGDX'"),
        (lambda: fedbench.cells("*", scale="huge"), "unknown scale 'huge'"),
        (
            lambda: fedbench.cells("*", seed=[0]),
            "unknown key of the configuration 'seed'. Did you mean 'seeds'",
        ),
        (lambda: fedbench.run(fedbench.cells(NAME)[0], scale="demo"), "has its scale already"),
        (
            lambda: fedbench.run(fedbench.cells(NAME)[0], seeds=[5], set={"train.iterations": 2}),
            "has its seeds and set already",
        ),
        (
            lambda: fedbench.run(NAME, set={"trian.iterations": 2}),
            "unknown place of a run 'trian.iterations'",
        ),
    ],
)
def test_mistakes_are_named(in_project: Project, call: object, says: str) -> None:
    with pytest.raises(UserError, match=says):
        call()  # type: ignore[operator]


def test_importing_fedbench_imports_neither_torch_nor_pandas() -> None:
    code = "import fedbench, sys; sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_notebook_runs(in_project: Project) -> None:
    with in_project.edit("config/scales/demo.yaml") as scale:  # the same cells in seconds
        scale["papers"]["localscgdam"]["train"] |= {"iterations": 40, "evaluations": 3}
    notebook = nbformat.read(ROOT / "docs/tutorial/first_steps.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "committed without outputs"
    folder = in_project.root / "docs/tutorial"  # where Jupyter and VS Code start it
    folder.mkdir(parents=True, exist_ok=True)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells if cell.get("outputs")]
    scores = ast.literal_eval(shown[2])
    assert scores.keys() == {"LocalSGDM", "LocalSGDAM"} and all(0 < score < 1 for score in scores.values())
    assert "floats_up" in shown[3]


def test_what_the_page_shows_is_there() -> None:
    text = (ROOT / "docs/reference/python.md").read_text()
    for name in fedbench.__all__:
        assert f"fedbench.{name}" in text, name
        assert getattr(fedbench, name).__doc__
    assert "first_steps.ipynb" in text
