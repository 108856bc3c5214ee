"""``make gpu``: what it runs first, and that it keeps its time. The CPU does what a card would."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from projects import Project

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


def test_checks_come_first_and_nothing_is_begun_when_the_time_is_up(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes 10 seconds of the 95 here: three checks, then seven cells, the last with what is left."""
    clock, calls = [0.0], list[tuple[list[str], float]]()

    def call(arguments: list[str], left: float) -> None:
        calls.append((arguments, left))
        clock[0] += 10

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(gpu, "call", call)
    monkeypatch.setattr(gpu, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    exported: list[list[str]] = []
    monkeypatch.setattr(gpu.subprocess, "run", lambda command, **_: exported.append(command))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--minutes", str(95 / 60), "--device", "cpu"])
    gpu.main()
    assert [left for _, left in calls] == pytest.approx([95 - 10 * at for at in range(10)])
    assert calls[1][0][-1] == "cpu" and all("{" not in part for arguments, _ in calls for part in arguments)
    cells = [arguments[3] for arguments, _ in calls[3:]]
    assert all(name.startswith("climb/MNIST/") for name in cells) and len(set(cells)) == 7
    assert exported == [[sys.executable, "-m", "fedbench", "store", "export", "gpu-runs.tar.gz"]]


def test_a_tiny_limit_leaves_an_archive_of_what_is_there(built: Project) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/gpu.py"), "--minutes", "0.001", "--device", "cpu"]
    subprocess.run([*command, "--no-checks", "--archive", "mine.tar.gz"], cwd=built.root, check=True)
    with tarfile.open(built.root / "mine.tar.gz") as archive:
        held = {Path(name).parent.name for name in archive.getnames() if Path(name).name == "run.json"}
    assert held and held == {path.parent.name for path in (built.root / "results/runs").rglob("run.json")}
