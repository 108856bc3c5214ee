"""Checklists: each answer is a fact of the runs on file, and where there is none it says so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from report_project import Project, run_result

from fedbench import seal
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report import checklist
from fedbench.report.document.pdf import compile_source


@pytest.fixture
def study(project: Project) -> Config:
    """Table 1 on CIFAR10 and FashionMNIST: three seeds each, a run that diverged, trials of one method."""
    grid = {"lr, mu": [[0.1, 0.0], [1.0, 0.5]], "beta": [0.9]}
    project.change(methods={"CoDA": {"params": {"lr": 1.0, "mu": 0.1}, "grid": grid}})
    tuned = project.root / "config/tuned/localscgdam/CIFAR10.yaml"
    tuned.parent.mkdir(parents=True)
    trials = {
        "protocol": {"metric": "val_auc", "validation": 0.1},
        "chosen": {"CoDA": {"lr": 1.0}},
        "scores": {"CoDA": [{"lr": 0.1, "val_auc": 0.7}, {"lr": 1.0, "val_auc": 0.9}]},
    }
    tuned.write_text(yaml.safe_dump(trials))
    config = Config(scale="reduced")
    project.fill("localscgdam", "table1", config)
    cell = next(cell for cell in project.cells("localscgdam", "table1", config) if cell.method == "CoDA")
    runs = [run_result(run.seed, run.key, {"test_auc": 0.9}) for run in cell.runs]
    runs[2] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(cell, runs)
    return config


def facts(config: Config) -> dict[str, str]:
    return {item.about: "\n".join(item.facts) for item in checklist.fill(Plan(config))}


def test_the_answers_are_facts_of_the_runs(study: Config) -> None:
    said = facts(study)
    assert "30 cells with the seeds 0, 1, 2." in said["Seeds and repetitions"]
    assert "CIFAR10/p4_imratio0.1/CoDA seed 2." in said["Error bars"]
    assert "one seed, and so without an error bar: 0." in said["Error bars"]
    search = said["Search space, trials and choice"]
    assert "Search space of CoDA: lr 0.1, 1.0; mu 0.0, 0.5; beta 0.9." in search
    assert "Search space of LocalSGDM: none." in search
    assert "CoDA on CIFAR10: 2 trials, chosen by val_auc (held out for them: 0.1)." in search
    assert "CoDA on FashionMNIST" not in search
    compute = said["Compute of a run and of all"]
    assert "FashionMNIST: 45 runs, 2 s a run on average (2 s to 2 s)." in compute
    assert "All runs together: 134 s" not in compute and "89 of 90 runs are timed." in compute
    assert said["Hardware"].startswith("2 cores: 90 runs.") and "Memory: not known." in said["Hardware"]
    assert "CIFAR10: none stated; cite Krizhevsky 2009." in said["Sources and licences"]
    assert "MIT. Source: https://github.com/zalandoresearch" in said["Sources and licences"]
    assert "numpy 2.4" in said["Code and versions"] and "0123456789ab" in said["Code and versions"]
    assert (
        "CIFAR10: sizes not known (not prepared here); held out for validation in the runs: nothing"
        in said["Data and splits"]
    )


def test_times_are_summed_over_the_runs(study: Config) -> None:
    for path in Path("results/runs").glob("*/run.json"):
        record = seal.read(path)
        seal.write(path, record | {"provenance": record["provenance"] | {"seconds": 3600.0}})
    said = facts(study)
    assert "All runs together: 3 d 17 h of training and evaluation" in said["Compute of a run and of all"]
    assert "Hours of training: 89.0" in said["Energy"]


def test_what_nothing_says_is_not_known(study: Config) -> None:
    shutil.rmtree("results")
    shipped = Path("reproduced/reduced/localscgdam.csv")
    shipped.parent.mkdir(parents=True, exist_ok=True)
    shipped.write_text(
        "dataset,p,imratio,method,seed,key,metric,value,status,reason,pace,sign,commit,hardware\n"
    )
    said = facts(study)
    none = "Not known: no run of this scale has ended; some of others are shipped (--scale reduced)."
    assert said["Seeds and repetitions"] == none
    for about in (
        "Error bars",
        "Search space, trials and choice",
        "Compute of a run and of all",
        "Hardware",
        "Energy",
        "Code and versions",
    ):
        assert said[about] == "Not known.", about
    assert "CIFAR10" in said["Sources and licences"], "known without a run"


def test_both_forms_have_every_fact(study: Config) -> None:
    markdown, latex = checklist.build(Plan(study))
    assert [markdown.name, latex.name] == ["localscgdam-checklist.md", "localscgdam-checklist.tex"]
    items = checklist.fill(Plan(study))
    text, source = markdown.read_text(), latex.read_text()
    for item in items:
        assert f"## {item.about} ({item.asked})" in text
        assert all(f"* {fact}\n" in text for fact in item.facts)
    lines = [line for line in source.splitlines() if line.startswith(r"\item ")]
    assert len(lines) == sum(len(item.facts) for item in items)


@pytest.mark.skipif(shutil.which("latexmk") is None, reason="latexmk is not installed")
def test_latex_takes_it(study: Config) -> None:
    source = checklist.build(Plan(study))[1].read_text()
    page = (
        rf"\documentclass{{article}}\usepackage[utf8]{{inputenc}}\begin{{document}}{source}\end{{document}}"
    )
    _, complaints = compile_source(page, "the checklist")
    assert not [one for one in complaints if re.search(r"\d{3}\.", one)]
