"""What the library's tests share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from toy import write_project
from world import tiny_norm

from fedbench.models import mlp

torch.set_num_threads(1)


@pytest.fixture
def double() -> Iterator[None]:
    """Build networks and compute in double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train a tiny network with batch-norm in place of the tiny one without."""
    monkeypatch.setattr(mlp, "build", tiny_norm)


@pytest.fixture(params=[False, True], ids=["mlp", "batch-norm"])
def with_norm(request: pytest.FixtureRequest) -> bool:
    """Train the tiny network without batch-norm, then the one with it; say which."""
    if request.param:
        request.getfixturevalue("norm")
    return bool(request.param)


@pytest.fixture(scope="session")
def prepared_digits(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with digits prepared; partitions are added as runs need them."""
    return shutil.copytree(digits, tmp_path_factory.mktemp("data") / "digits")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared_digits: Path) -> Path:
    """Work in a project with a small paper called ``toy``; returns its folder."""
    write_project(tmp_path, prepared_digits)
    monkeypatch.chdir(tmp_path)
    return tmp_path
