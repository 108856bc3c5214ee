"""The configuration as Snakemake sees it: what can be given, and what a mistake is answered with."""

from __future__ import annotations

import os
import shutil

import pytest
from projects import Project


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("scale=reducd", "unknown scale 'reducd'. Did you mean 'reduced'?"),
        ("paper=localscgdm", "unknown paper 'localscgdm'. Did you mean 'localscgdam'?"),
        ("datasets=Digit", "unknown dataset of localscgdam 'Digit'. Did you mean 'Digits'?"),
        ("sacle=demo", "unknown key of the configuration 'sacle'. Did you mean 'scale'?"),
        ("seeds=one", "seeds: 'one' is not a list of whole numbers"),
        ("device=gpu", "device: Input should be 'auto', 'cpu' or 'cuda' (got 'gpu')"),
    ],
)
def test_a_wrong_option_is_answered_before_any_work(project: Project, given: str, answer: str) -> None:
    said = project.snakemake("--config", given, fails=True)
    assert answer in said and "Traceback" not in said
    assert not (project.root / "data").exists()


@pytest.mark.parametrize(
    ("place", "value", "answer"),
    [
        (
            ("tables", "table1", "methods"),
            ["LocalSGDN"],
            "unknown method 'LocalSGDN'. Did you mean 'LocalSGDM'?",
        ),
        (("tables", "table1", "settings"), {"imratio": [1.5]}, "(got 1.5)"),
        (("tables", "table1", "settings"), {"imratio": [0]}, "(got 0)"),
        (
            ("tables", "table1", "settings"),
            {"p": [0]},
            "period: Input should be greater than or equal to 1 (got 0)",
        ),
        (("methods", "CoDA", "parms"), {}, "parms: unknown key. Did you mean 'params'?"),
    ],
)
def test_a_wrong_experiment_is_answered_before_any_work(
    project: Project, place: tuple[str, ...], value: object, answer: str
) -> None:
    with project.edit("config/papers/localscgdam.yaml") as paper:
        inner = paper
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
    said = project.snakemake("tables/table1.tex", fails=True)
    assert answer in said and "localscgdam" in said and "Traceback" not in said
    assert not (project.root / "data").exists()


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("tables/localscgdam/table9.tex", "unknown table of localscgdam 'table9'. Did you mean"),
        ("tables/localscgdm/table1.tex", "unknown paper 'localscgdm'. Did you mean 'localscgdam'?"),
    ],
)
def test_a_wrong_target_is_answered_with_the_known_ones(project: Project, target: str, answer: str) -> None:
    said = project.snakemake(target, "-n", fails=True)
    assert answer in said and "Traceback" not in said


def test_a_paper_is_no_obstacle_to_another(project: Project) -> None:
    (project.root / "config/papers/draft.yaml").write_text("title: [")
    options = (
        "--config",
        "scale=reduced",
        "datasets=MNIST",
        "seeds=0",
    )  # which the configured paper does not have
    said = project.snakemake("tables/climb/table2.tex", "-n", *options)
    assert said.count("rule partition:") == 12 and said.count("rule train:") == 48


def test_a_missing_mirror_is_named(project: Project) -> None:
    options = ("--config", "datasets=FashionMNIST", "mirror=/no/such folder")
    said = project.snakemake("data/prepared/fashionmnist.npz", *options, fails=True)
    assert "/no/such folder" in said and "Traceback" not in said


@pytest.mark.parametrize(("device", "cards"), [("cuda", 1), ("cpu", 0)])
def test_only_jobs_on_a_card_claim_one(project: Project, device: str, cards: int) -> None:
    said = project.snakemake("tables/table1.tex", "-n", "--config", f"device={device}")
    assert said.count(f"gpu={cards}") == 2 and said.count(f"gpu={1 - cards}") == 0


def test_a_plain_call_builds_every_table_and_figure_of_the_paper(project: Project) -> None:
    said = project.snakemake("-n")
    with project.edit("config/papers/localscgdam.yaml") as paper:
        wanted = [f"tables/{name}.tex" for name in paper["tables"]]
        wanted += [f"figures/{name}.pdf" for name in paper["figures"]]
    inputs = said.partition("rule all:")[2]
    assert len(wanted) > 2 and all(name in inputs for name in wanted)
    assert ("tables/table1.pdf" in inputs) == bool(shutil.which("latexmk") and shutil.which("pdflatex"))


def test_a_dry_run_reads_no_torch(project: Project) -> None:
    """Torch takes seconds to import; a dry run of a large table must not wait for it."""
    (project.root / "torch.py").write_text("raise RuntimeError('the workflow imported torch')\n")
    environment = project.environment()
    first = os.pathsep.join(filter(None, [str(project.root), environment.get("PYTHONPATH", "")]))
    project.environment = lambda: {**environment, "PYTHONPATH": first}  # type: ignore[method-assign]
    assert "train" in project.snakemake("-n")
