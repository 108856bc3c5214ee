"""Projects to run Snakemake in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from projects import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return Project.fresh(tmp_path)


@pytest.fixture(scope="session")
def once_built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A project whose Table 1 was built with one job at a time, and what Snakemake said; not to be changed."""
    project = Project.fresh(tmp_path_factory.mktemp("built"))
    return project, project.snakemake("tables/table1.tex", "--cores", "1")


@pytest.fixture
def built(once_built: tuple[Project, str], tmp_path: Path) -> Project:
    """A copy of the built project, with the times of all files, to be changed freely."""
    root = tmp_path / "built"
    shutil.copytree(once_built[0].root, root, symlinks=True)
    return Project(root)
