"""A SLURM of one node, and a project whose table was built without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from onenode import OneNode, missing

from projects import Project


@pytest.fixture(scope="session")
def slurm() -> Iterator[OneNode]:
    """A running SLURM with two pretended GPUs."""
    if "FEDBENCH_TEST_CLUSTER" not in os.environ:
        pytest.skip("starts a SLURM and takes minutes: `make test-cluster`")
    if missing():
        pytest.skip(f"no SLURM here: {', '.join(missing())} not found (Debian: slurm-wlm slurm-client munge)")
    with OneNode(cpus=4, cards=2) as node:
        yield node


def three_cells(root: Path) -> Project:
    """A project whose Table 1 has three cells of two seeds that only save when they are told to stop."""
    project = Project.fresh(root)
    with project.edit("config/scales/tiny.yaml") as scale:
        scale["seeds"] = [0, 1]
        scale["papers"]["localscgdam"]["train"]["iterations"] = 480
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["tables"]["table1"]["methods"] = ["LocalSGDAM", "LocalSGDM", "CoDA"]
    with project.edit("config/config.yaml") as config:
        config["checkpoint_seconds"] = 1e9
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of three cells in which nothing has run."""
    return three_cells(tmp_path)


@pytest.fixture(scope="session")
def built_here(slurm: OneNode, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of three cells whose Table 1 was built without a cluster."""
    project = three_cells(tmp_path_factory.mktemp("here"))
    project.snakemake("tables/table1.tex")
    return project
