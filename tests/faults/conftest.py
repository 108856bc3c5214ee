"""Small projects and small disks to break."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.data.prepared import prepare

sys.path.append(str(Path(__file__).parents[1] / "workflow"))

from disks import Disk
from projects import Project


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


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with digits prepared; do not write into it."""
    folder = tmp_path_factory.mktemp("digits")
    prepare("digits", folder)
    return folder
