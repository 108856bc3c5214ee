"""A store with runs and one without."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up import add

from fedbench.store.runs import Store


@pytest.fixture
def other_store(tmp_path: Path) -> Store:
    """A store with three runs."""
    store = Store(tmp_path / "there" / "results" / "runs")
    for seed in range(3):
        add(store, seed)
    return store


@pytest.fixture
def this_store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "here")
