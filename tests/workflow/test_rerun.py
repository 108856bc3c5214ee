"""What a call builds, and what it leaves alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from projects import OWN, TABLE, Project, jobs


def test_a_table_from_nothing(once_built: tuple[Project, str]) -> None:
    project, said = once_built
    assert jobs(said) == {"prepare": 1, "partition": 2, "train": 2, "table": 1, "own_table": 1}
    rows = project.table()
    assert set(rows) == {"LocalSGDAM", "LocalSGDM"}
    for row in rows.values():
        assert (row["status"], row["n_seeds"], row["scale"]) == ("finished", "2", "tiny")
        assert 0 < float(row["mean"]) <= 1
    for path in OWN:
        same = (project.root / TABLE).with_name(Path(path).name)
        assert (project.root / path).read_bytes() == same.read_bytes()
    assert "LocalSGDAM" in (project.root / "tables/table1.tex").read_text()


def test_a_changed_learning_rate_and_another_seed_train_what_they_concern_only(built: Project) -> None:
    before = built.runs()
    with built.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["params"]["lr"] = 0.07
    said = built.snakemake("tables/table1.tex", "--config", "seeds=0,1,2")
    assert jobs(said) == {"partition": 1, "train": 2, "table": 1, "own_table": 1}
    after = built.runs()
    assert {key: after[key] for key in before} == before
    new = sorted(method for key, (method, _) in after.items() if key not in before)
    assert new == ["local_sgdam 2", "local_sgdm 0", "local_sgdm 1", "local_sgdm 2"]
    assert {row["n_seeds"] for row in built.table().values()} == {"3"}


def test_comments_and_what_changes_no_number_train_nothing(built: Project) -> None:
    given = ("device=auto", "mirror=.", "client_chunk=2")
    assert "Nothing to be done" in built.snakemake("tables/table1.tex", "--config", *given)
    for path in ("config/papers/localscgdam.yaml", "workflow/rules/train.smk", "data_prep/partition.py"):
        with (built.root / path).open("a") as file:
            file.write("\n# a remark\n")
    said = built.snakemake("tables/table1.tex", "--dry-run")
    assert "rule table:" in said and "rule train:" not in said


def test_a_deleted_table_is_rebuilt_without_training(built: Project) -> None:
    before = (built.root / "tables/table1.md").read_bytes()
    shutil.rmtree(built.root / "tables/localscgdam")
    (built.root / "tables/table1.tex").unlink()
    assert jobs(built.snakemake("tables/table1.tex")) == {"table": 1, "own_table": 1}
    assert (built.root / "tables/table1.md").read_bytes() == before


def test_another_tolerance_rebuilds_the_table_only(built: Project) -> None:
    said = built.snakemake("tables/table1.tex", "--config", "tolerance=0.05")
    assert jobs(said) == {"table": 1, "own_table": 1}
    assert json.loads((built.root / f"{TABLE}.json").read_text())["tolerance"] == 0.05


def test_a_figure_and_a_typeset_table_from_the_same_runs(built: Project) -> None:
    if not (shutil.which("latexmk") and shutil.which("pdflatex")):
        pytest.skip("no LaTeX")
    said = built.snakemake("tables/table1.pdf", "figures/figure1.pdf")
    assert jobs(said) == {"typeset": 1, "own_pdf": 1, "figure": 1, "own_figure": 1}
    for path in ("tables/table1.pdf", "figures/figure1.pdf"):
        assert (built.root / path).read_bytes().startswith(b"%PDF")
