"""``make gpu``: what it runs first, and that it keeps its time. The CPU does what a card would."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

from fedbench.plan.cells import cells_of
from fedbench.plan.configuration import CONFIG_DIR, load_config

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cells_with_the_least_work_come_first(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = load_config(CONFIG_DIR / "config.yaml", {"scale": "paper"})
    cells = sorted((c for c in cells_of(config, "climb", "table2") if c.dataset == "MNIST"), key=gpu.work)
    found = [gpu.work(cell) for cell in cells]
    assert len(cells) > 10 and found == sorted(found) and found[0] < found[-1]
    assert "CLIMB" not in cells[0].method and all(
        Path(check[0]).exists() or check[0] == "-m" for check in gpu.CHECKS
    )


def test_what_runs_longer_than_the_time_is_stopped(gpu: ModuleType) -> None:
    begun = time.monotonic()
    gpu.call(["-c", "import time; time.sleep(600)"], 0.2)
    assert time.monotonic() - begun < 60
