"""Small projects and small disks to break."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "workflow"))

from disks import Disk
from projects import Project
from workflow_process import WorkflowProcess


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return Project.fresh(tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 512 KiB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    small = Disk(tmp_path / "disk", "512k")
    yield small
    small.close()


@pytest.fixture
def workflows() -> Iterator[list[WorkflowProcess]]:
    """The workflows of a test; none survives it."""
    all_of_them: list[WorkflowProcess] = []
    yield all_of_them
    for workflow in all_of_them:
        workflow.kill()
        workflow.process.wait()


@pytest.fixture(scope="session")
def once_built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose Table 1 was built; not to be changed."""
    project = Project.fresh(tmp_path_factory.mktemp("built"))
    project.snakemake("tables/table1.tex")
    return project


@pytest.fixture
def built(once_built: Project, tmp_path: Path) -> Project:
    """A copy of the built project, with the times of all files, to be changed freely."""
    shutil.copytree(once_built.root, tmp_path / "built", symlinks=True)
    return Project(tmp_path / "built")
