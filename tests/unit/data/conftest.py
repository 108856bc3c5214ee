"""A small dataset of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Work in a temporary project; call it with arrays to get the name of a dataset made of them."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "datasets"
    folder.mkdir(parents=True)

    def make(name: str = "mine", extra: str = "", **arrays: np.ndarray) -> str:
        np.savez(tmp_path / f"{name}.npz", **arrays)
        (folder / f"{name}.yaml").write_text(f"file: {name}.npz\n{extra}")
        return name

    return make
