"""Settings that hold for every test, the order of tests, and projects to run Snakemake in."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings

from projects import Project
from web_server import Server

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch
# else each of some hundred programs compiles the library again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("MPLBACKEND", "agg")
settings.register_profile("fedbench", deadline=None, derandomize=True)
settings.load_profile("fedbench")
LONG = ("faults", "workflow")
"""Folders whose tests run workflows, which takes up to a minute each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each worker, which begins with one piece of the list, long tests first: all end with short ones."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    files = [[*tests] for _, tests in groupby(items, lambda item: item.path)]
    long = [file for file in files if file[0].path.parent.name in LONG]
    short = [item for item in items if item.path.parent.name not in LONG]
    ordered = list[pytest.Item]()
    for worker in range(workers):
        end = len(ordered) + (len(items) - len(ordered)) // (workers - worker)
        ordered += [item for file in long[worker::workers] for item in file]
        rest = max(0, end - len(ordered))
        ordered += short[:rest]
        del short[:rest]
    items[:] = ordered


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return Project.fresh(tmp_path)


@pytest.fixture(scope="session")
def once_built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A project whose Table 1 was built with one job at a time, and what Snakemake said; not to be changed.

    All workers of pytest-xdist have the same one, which the first of them builds.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    said = folder / "built.txt"
    with (folder / "built.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(Project.fresh(folder / "built").snakemake("tables/table1.tex", "--cores", "1"))
    return Project(folder / "built"), said.read_text()


@pytest.fixture
def built(once_built: tuple[Project, str], tmp_path: Path) -> Project:
    """A copy of the built project, with the times of all files, to be changed freely."""
    shutil.copytree(once_built[0].root, tmp_path / "built", symlinks=True)
    return Project(tmp_path / "built")


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with digits prepared; do not write into it."""
    from fedbench.data.prepared import prepare

    folder = tmp_path_factory.mktemp("digits")
    prepare("digits", folder)
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A web server without files."""
    monkeypatch.setenv("no_proxy", "*")
    running = Server()
    yield running
    running.close()
