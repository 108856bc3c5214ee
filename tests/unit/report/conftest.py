"""What the tests of the report share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from report_project import Project

from fedbench.plan.schema import Config


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project: everything configured, nothing run."""
    return Project(tmp_path)


@pytest.fixture
def reduced() -> Config:
    """Three seeds of CIFAR10 and FashionMNIST."""
    return Config(scale="reduced")


@pytest.fixture
def filled(project: Project, reduced: Config) -> Callable[[str, str], Project]:
    """The project with one target's cells all finished at the reduced scale."""

    def fill(paper: str, target: str) -> Project:
        metrics = ("test_minority_accuracy", "test_overall_accuracy") if paper == "climb" else ("test_auc",)
        project.fill(paper, target, reduced, metrics)
        return project

    return fill
