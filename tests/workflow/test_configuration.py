"""The configuration as Snakemake sees it: what can be given, and what a mistake is answered with."""

from __future__ import annotations

import os
import shutil

import pytest

from projects import BIN, Project


def test_a_wrong_option_is_answered_before_any_work(project: Project) -> None:
    said = project.snakemake("--config", "scale=reducd", fails=True)
    assert "unknown scale 'reducd'. Did you mean 'reduced'?" in said and "Traceback" not in said
    assert not (project.root / "data").exists()


@pytest.mark.parametrize("given", ["seeds=1_000", "seeds=010", "tolerance=0_1.5"])
def test_numbers_that_python_reads_and_yaml_does_not_are_refused_as_in_a_file(
    project: Project, given: str
) -> None:
    said = project.snakemake("-n", "--config", given, fails=True)
    assert f"error: --config {given.replace('=', ': line 1: ')} is no number in YAML 1.2" in said


def test_a_wrong_experiment_is_answered_before_any_work(project: Project) -> None:
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["tables"]["table1"]["methods"] = ["LocalSGDN"]
    said = project.snakemake("tables/table1.tex", fails=True)
    assert "unknown method 'LocalSGDN'. Did you mean 'LocalSGDM'?" in said and "Traceback" not in said
    assert "config/papers/localscgdam.yaml" in said and not (project.root / "data").exists()


def test_a_missing_hyper_parameter_is_named_by_a_dry_run_and_before_any_job(project: Project) -> None:
    with project.edit("config/papers/localscgdam.yaml") as paper:
        del paper["methods"]["LocalSGDM"]["params"]["momentum"]
    for call in (["-n"], []):
        said = project.snakemake("tables/table1.tex", *call, fails=True)
        place = "error: config/papers/localscgdam.yaml: methods.LocalSGDM: method 'local_sgdm' needs momentum"
        assert place in said and "Traceback" not in said
    assert not (project.root / "data").exists() and not (project.root / "results/runs").exists()


def without_torch(project: Project) -> None:
    """Let Snakemake fail in this project as soon as something imports PyTorch."""
    (project.root / "torch.py").write_text("raise RuntimeError('the workflow imported torch')\n")
    environment = project.environment()
    first = os.pathsep.join(filter(None, [str(project.root), environment.get("PYTHONPATH", "")]))
    project.programs = BIN
    project.environment = lambda: {**environment, "PYTHONPATH": first}  # type: ignore[method-assign]


def test_a_wrong_target_is_answered_with_the_known_ones_without_torch(project: Project) -> None:
    """Torch takes seconds to import: only cells that are to be trained are worth them."""
    without_torch(project)
    cell = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM"
    for slip, answer in (
        ("tables/tabel1.tex", "unknown table of localscgdam 'tabel1'. Did you mean 'table1'?"),
        ("figures/localscgdam/figur1.pdf", "'figur1'. Did you mean 'figure1'?"),
        (f"{cell}s.json", f"nearest: {cell}.json"),
    ):
        said = project.snakemake(slip, "-n", fails=True)
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
    said = project.snakemake("data/prepared/fashionmnist.json", *options, fails=True)
    assert "/no/such folder" in said and "Traceback" not in said


def test_only_jobs_on_a_card_claim_one(project: Project) -> None:
    said = project.snakemake("tables/table1.tex", "-n", "--config", "device=cuda")
    assert said.count("gpu=1") == 2 and "gpu=0" not in said


def test_a_plain_call_builds_every_table_and_figure_of_the_paper(project: Project) -> None:
    with project.edit("config/scales/tiny.yaml") as scale:
        scale["papers"]["localscgdam"]["train"]["iterations"] = 16  # a round of the longest period
    said = project.snakemake("-n")
    with project.edit("config/papers/localscgdam.yaml") as paper:
        wanted = [f"tables/{name}.tex" for name in paper["tables"]]
        wanted += [f"figures/{name}.pdf" for name in paper["figures"]]
    inputs = said.partition("rule everything:")[2]
    assert len(wanted) > 2 and all(name in inputs for name in wanted)
    assert ("tables/table1.pdf" in inputs) == bool(shutil.which("latexmk") and shutil.which("pdflatex"))
    assert "train" in said and "gpu=0" in said and "gpu=1" not in said, "on a processor none claims a card"


def test_a_dry_run_that_shows_no_jobs_counts_them_and_says_why(project: Project) -> None:
    shown, counted = (project.snakemake("tables/table1.tex", "-n", *quiet) for quiet in ([], ["-q", "rules"]))
    assert "rule train:" in shown and "rule train:" not in counted
    summary = counted.rpartition("Job stats:")[2]
    assert summary == shown.rpartition("Job stats:")[2] and "train" in summary and "Reasons:" in summary


def test_cells_share_the_cores_for_their_seeds(project: Project) -> None:
    """Two cells of two seeds each; a seed takes a core, and a job on a card takes no more than one."""
    table = ("tables/table1.tex", "-n")
    assert project.snakemake(*table, "--cores", "9").count("threads: 2") == 2
    assert "threads:" not in project.snakemake(*table, "--cores", "3")
    assert "threads:" not in project.snakemake(*table, "--cores", "9", "--config", "device=cuda")
