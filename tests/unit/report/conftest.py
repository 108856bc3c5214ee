"""What the tests of the report share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_project import Project, cell_of, localscgdam, run_result


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project, and the folder to work in: everything configured, nothing run."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


@pytest.fixture
def tiny(project: Project) -> Project:
    """One dataset that runs and one that does not, three methods, two periods, every kind of trouble."""
    paper: dict[str, Any] = localscgdam()
    table = paper["tables"]["table1"]
    table |= {"datasets": ["FashionMNIST", "Melanoma"], "methods": ["LocalSCGDAM", "CoDA", "LocalSGDM_RL"]}
    table["settings"] = {"p": [4, 8]}
    paper["claims"][0]["better"]["than"] = ["CoDA", "LocalSGDM_RL"]
    project.save_paper("localscgdam", paper)
    for cell in project.cells():
        values = {"LocalSCGDAM": [0.975, 0.980, 0.985], "CoDA": [0.90, 0.94, 0.98]}.get(cell.method)
        if values:
            project.finish(cell, values, device_mean_test_auc=0.97, device_var_test_auc=3e-7)
    broken = cell_of(project, "FashionMNIST", "LocalSGDM_RL")
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9}) for s in broken.runs]
    runs[2] |= {"status": "diverged", "reason": "loss is nan at iteration 8"}
    project.write(broken, runs)
    return project
