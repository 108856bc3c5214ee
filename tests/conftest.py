"""Settings that hold for every test: one thread, no deadlines, and the same generated examples each time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from web_server import Server

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch
os.environ.setdefault("MPLBACKEND", "agg")
settings.register_profile("fedbench", deadline=None, derandomize=True)
settings.load_profile("fedbench")


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
