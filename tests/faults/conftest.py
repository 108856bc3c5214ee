"""Small disks and workflows to break."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from victims import Disk, WorkflowProcess


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
