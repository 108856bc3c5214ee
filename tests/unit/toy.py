"""A project with one small paper: two settings, three methods, a tiny scale on digits or a table of one's own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from fedbench.commands.cli import app
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

PAPER: dict[str, Any] = {
    "title": "A toy",
    "citation": "Nobody. A toy. 2024.",
    "defaults": {
        "data": {"labels": {"rule": "halves"}, "imbalance": {"rule": "drop_positives"}, "clients": 3},
        "train": {"epochs": 10, "batch_size": 8, "evaluations": 2},
    },
    "datasets": {
        "Printed": {"data": {"dataset": "nowhere"}, "network": {"name": "mlp"}},
        "Digits": {
            "printed": False,
            "data": {"dataset": "digits"},
            "network": {"name": "mlp", "options": {"hidden": [4], "activation": "leaky_relu"}},
            "train": {"batch_size": 16},
        },
    },
    "methods": {
        "Plain": {"algorithm": "fedavg", "params": {"lr": 0.1}, "grid": {"lr": [0.01, 0.1, 0.2, 0.5]}},
        "Proximal": {
            "algorithm": "fedprox",
            "params": {"lr": 0.1, "mu": 0.1},
            "grid": {"lr": [0.05, 0.1], "mu": [0.0, 1.0]},
        },
        "Plain_too": {
            "algorithm": "local_sgdm",
            "params": {"lr": 0.1, "momentum": 0.5},
            "train": {"weight_decay": 0.01},
            "grid": {"lr, momentum": [[0.1, 0.5], [0.2, 0.5], [0.2, 0.9], [0.3, 0.0]]},
        },
    },
    "settings": {
        "p": {"sets": ["train.period"], "default": 4, "label": "period"},
        "imratio": {"sets": ["data.imbalance.imratio"], "default": 0.2, "label": "share of positives"},
    },
    "tune": {
        "setting": {"p": 2},
        "trials": 4,
        "metric": "val_auc",
        "validation": 0.2,
        "train": {"epochs": None, "iterations": 4, "evaluations": 1},
        "seeds": [100],
    },
    "tables": {
        "table1": {
            "title": "One",
            "datasets": ["Printed"],
            "methods": ["Plain", "Proximal", "Plain_too"],
            "settings": {"p": [2, 4]},
            "metrics": ["test_auc"],
            "rows": ["dataset", "method"],
            "columns": ["p"],
        }
    },
    "figures": {
        "figure1": {
            "title": "Curves",
            "panels": "dataset",
            "datasets": ["Printed"],
            "methods": ["Plain"],
            "settings": {"p": [4, 8]},
            "metrics": ["test_auc"],
        }
    },
}

SCALE: dict[str, Any] = {
    "description": "a moment",
    "seeds": [0, 1],
    "papers": {
        "toy": {
            "datasets": ["Digits"],
            "stand_in": "Digits",
            "train": {"epochs": None, "iterations": 8, "evaluations": 2},
        }
    },
}


def write_yaml(path: Path, content: Any) -> None:
    """Write a YAML file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def write_project(root: Path, data_dir: Path) -> None:
    config = root / "config"
    write_yaml(
        config / "config.yaml", {"scale": "demo", "paper": "toy", "device": "cpu", "data_dir": str(data_dir)}
    )
    write_yaml(config / "papers" / "toy.yaml", PAPER)
    write_yaml(config / "scales" / "demo.yaml", SCALE)
    full = {"toy": {"datasets": ["Printed"]}}
    write_yaml(config / "scales" / "paper.yaml", {"description": "all", "seeds": [0], "papers": full})


def rewrite(**parts: Any) -> None:
    """Change parts of the toy paper; a part that is a function gets a copy to change."""
    paper = copy.deepcopy(PAPER)
    for name, part in parts.items():
        if callable(part):
            part(paper.setdefault(name, []))
        else:
            paper[name] = part
    write_yaml(Path("config/papers/toy.yaml"), paper)


BY_SITE: dict[str, Any] = {"clients": "sites", "partition": {"rule": "by_site"}}
AS_IT_IS: dict[str, Any] = {"labels": {"rule": "original"}, "imbalance": {"rule": "none"}}
"""Keys of ``data``: hospitals are clients; labels and their shares are those of the file."""


def write_clinic(described: str, table: dict[str, Any], data: dict[str, Any], **entry: Any) -> dict[str, Any]:
    """Write the YAML of a dataset, and the toy paper with it and changes of its first table; return the paper."""
    Path("config/datasets").mkdir(exist_ok=True)
    Path("config/datasets/clinic.yaml").write_text(described)
    paper = copy.deepcopy(PAPER)
    network = {"name": "mlp", "options": {"hidden": [4]}}
    paper["datasets"] = {"Digits": {"data": {"dataset": "clinic", **data}, "network": network, **entry}}
    paper["tables"]["table1"] |= {"datasets": ["Digits"], **table}
    del paper["figures"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return paper


def clinic_cells() -> list[Cell]:
    """The cells of the first table."""
    return Plan(load_config(), "toy").cells("table1")


def call(*arguments: str, status: int = 0) -> Result:
    """Call ``fedbench``, which ends with this status and without a traceback."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == status and "Traceback" not in result.output, result.output
    return result
