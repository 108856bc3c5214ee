"""Small datasets of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raw_files import OwnTable

from fedbench.data.prepared import Prepared, load_prepared, prepare


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a temporary project; its folder of datasets."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "datasets"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def own_data(own_folder: Path) -> Callable[..., str]:
    """Call it with arrays to get the name of a dataset made of them."""

    def make(name: str = "mine", extra: str = "", **arrays: np.ndarray) -> str:
        np.savez(f"{name}.npz", **arrays)
        (own_folder / f"{name}.yaml").write_text(f"file: {name}.npz\n{extra}")
        return name

    return make


@pytest.fixture
def own_table(own_folder: Path) -> OwnTable:
    """Call it with the text of a table whose classes are in ``kind``, and further keys, to get it prepared as ``t``."""

    def make(text: str | bytes, keys: str = "", name: str = "t.csv") -> Prepared:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        (own_folder / "t.yaml").write_text(f"file: {name}\nlabel: kind\n{keys}")
        prepare("t", "data")
        return load_prepared("t", "data")

    return make
