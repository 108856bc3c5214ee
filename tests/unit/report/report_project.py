"""A small project on disk: two papers, scales, published numbers, and made-up results for named cells."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fedbench import sealed_json
from fedbench.random import stream
from fedbench.report import tables
from fedbench.report.document import Table
from fedbench.results.run_facts import class_counts, run_facts
from fedbench.spec import RunSpec
from fedbench.store import cell_files
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

PUBLISHED = Path(__file__).parents[3] / "published"
METHODS = ["LocalSCGDAM", "CoDA", "LocalSGDAM", "LocalSGDM", "LocalSGDM_RL"]
DATASETS = ["CATvsDOG", "CIFAR10", "CIFAR100", "STL10", "FashionMNIST", "Melanoma"]
REDUCED = Config(scale="reduced")
"""Three seeds of CIFAR10 and FashionMNIST."""
METRICS = {"localscgdam": ("test_auc",), "climb": ("test_minority_accuracy", "test_overall_accuracy")}
TRAIN = {"iterations": 100, "period": 4, "batch_size": 8}
TABLE: dict[str, Any] = {
    "title": "T", "datasets": ["CIFAR10"], "methods": ["CoDA", "LocalSGDM"], "settings": {"p": [4, 8]},
    "metrics": ["test_auc"], "rows": ["method"], "columns": ["p"],
}  # fmt: skip
FIGURE: dict[str, Any] = {
    "title": "T", "panels": "dataset", "datasets": ["CIFAR10"], "methods": ["CoDA", "LocalSGDM"],
    "settings": {"p": [4, 8, 16]}, "metrics": ["test_auc"],
}  # fmt: skip


def _dataset(name: str, printed: bool = True) -> dict[str, Any]:
    return {"printed": printed, "data": {"dataset": name.lower()}, "network": {"name": "mlp"}}


def localscgdam() -> dict[str, Any]:
    """The paper's table 1 and two figures over stand-in hyper-parameters."""
    grid = {"datasets": DATASETS, "methods": METHODS, "settings": {"p": [4, 8, 16]}, "metrics": ["test_auc"]}
    table = {"title": "Test AUC of different methods; p is the communication period", **grid}
    imbalances = {"panels": "imratio", "datasets": ["CATvsDOG"], "settings": {"imratio": [0.01, 0.05, 0.2]}}
    leads = {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"}
    claim = {"says": "LocalSCGDAM has the best AUC in every column", "in": ["table1"], "better": leads}
    return {
        "title": "Federated Compositional Deep AUC Maximization",
        "citation": "Zhang et al., NeurIPS 2023",
        "defaults": {"data": {"clients": 4}, "train": TRAIN},
        "datasets": {name: _dataset(name) for name in DATASETS} | {"Digits": _dataset("digits", printed=False)},
        "methods": {name: {"algorithm": name.lower()} for name in METHODS},
        "settings": {
            "p": {"sets": ["train.period"], "default": 4, "label": "p"},
            "imratio": {"sets": ["params.imratio"], "default": 0.1, "label": "imbalance ratio"},
        },
        "tables": {
            "table1": {
                **table, "rows": ["dataset", "method"], "columns": ["p"], "published": "localscgdam_table1.csv"
            }
        },
        "figures": {
            "figure1": {**grid, "title": "Test AUC, p = 4", "panels": "dataset", "settings": {"p": [4]}},
            "figure4": {**grid, "title": "Imbalance ratios", **imbalances},
        },
        "claims": [{**claim, "holds": "all"}],
    }  # fmt: skip


def climb() -> dict[str, Any]:
    """The paper's table 2: two numbers in a cell, methods as columns, doubtful cells."""
    methods = ["Baseline", "CLIMB", "Ratio-Loss", "Focal-Loss"]
    metrics = [*METRICS["climb"]]
    names = {"rho": (10, "ρ"), "n_minority": (1, "minority classes"), "alpha": (0.1, "α")}
    figure = {"panels": "metric", "datasets": ["MNIST"], "settings": {"alpha": [0.1]}, "x": "round"}
    inside = {"kind": "duals", "methods": ["CLIMB"], "metrics": ["dual", "loss"]}
    return {
        "title": "An Agnostic Approach to Federated Learning with Class Imbalance",
        "citation": "Shen et al., ICLR 2022",
        "defaults": {"data": {"clients": 100}, "train": {**TRAIN, "iterations": None, "rounds": 10}},
        "datasets": {name: _dataset(name) for name in ("CIFAR10", "MNIST")},
        "methods": {name: {"algorithm": "fedavg", "params": {"name": name}} for name in methods},
        "settings": {
            name: {"sets": [f"params.{name}"], "default": default, "label": label}
            for name, (default, label) in names.items()
        },
        "tables": {
            "table2": {
                "title": "Minority and overall accuracy", "datasets": ["CIFAR10", "MNIST"], "methods": methods,
                "settings": {"rho": [10, 5], "n_minority": [1, 3], "alpha": [0.0, 0.1, 0.2]}, "metrics": metrics,
                "rows": ["rho", "dataset", "n_minority", "alpha"], "columns": ["method"],
                "published": "climb_table2.csv",
            }
        },
        "figures": {
            "figure1": {"title": "Accuracy against rounds", "methods": methods, "metrics": metrics, **figure},
            "figure2": {"title": "Inside CLIMB", **figure, **inside},
        },
    }  # fmt: skip


def _of_scale(localscgdam: dict[str, Any], datasets: list[str], seeds: list[int]) -> dict[str, Any]:
    return {"seeds": seeds, "papers": {"localscgdam": localscgdam, "climb": {"datasets": datasets}}}


SCALES = {
    "demo": _of_scale({"datasets": ["Digits"], "stand_in": "Digits"}, ["MNIST"], [0]),
    "reduced": _of_scale({"datasets": ["CIFAR10", "FashionMNIST"]}, ["MNIST"], [0, 1, 2]),
    "paper": _of_scale({"datasets": DATASETS}, ["CIFAR10", "MNIST"], [0, 1, 2]),
}


MADE: dict[str, dict[str, bytes]] = {}
"""Files that :meth:`Project.once` wrote, by a digest of what it was asked for and of the files before."""


class Project:
    """A folder that holds what the report reads, and ways to put results in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("papers", "scales"):
            (root / "config" / folder).mkdir(parents=True)
        for key, paper in (("localscgdam", localscgdam()), ("climb", climb())):
            self.save_paper(key, paper)
        for name, scale in SCALES.items():
            text = dumped({"description": f"the {name} protocol", **scale})
            (root / "config" / "scales" / f"{name}.yaml").write_text(text)
        shutil.copytree(PUBLISHED, root / "published")

    def save_paper(self, key: str, paper: dict[str, Any]) -> None:
        (self.root / "config" / "papers" / f"{key}.yaml").write_text(dumped(paper))

    def change(self, **parts: Any) -> None:
        """Write localscgdam with other ``parts``: of tables, methods and the like the keys that are given, else all."""
        paper = localscgdam()
        for name, part in parts.items():
            if isinstance(entries := paper.get(name), dict):
                part = entries | {entry: entries.get(entry, {}) | keys for entry, keys in part.items()}
            paper[name] = part
        self.save_paper("localscgdam", paper)

    def cells(
        self, paper: str = "localscgdam", target: str | None = "table1", config: Config = REDUCED
    ) -> list[Cell]:
        """The cells of a target at the configured scale, in the folder that is worked in."""
        return Plan(config, paper).cells(target)

    def write(self, cell: Cell, runs: list[dict[str, Any]]) -> Path:
        """Write the result file of a cell, and the records of its runs; of others the store has none."""
        specs = {spec.key: spec for spec in cell.runs}
        self.forget(spec for key, spec in specs.items() if key not in {run["key"] for run in runs})
        for run in runs:
            folder = self.root / "results" / "runs" / run["key"]
            if "facts" not in run and run["status"] == "finished" and (spec := specs.get(run["key"])):
                path = folder / "curve.csv"
                curve = pd.read_csv(path) if path.exists() else pd.DataFrame()
                counts = class_counts(spec, self.root / "data")
                run["facts"] = run_facts(run["metrics"], curve, spec.train, counts)
            shas = {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.csv")}
            if run["key"] in specs:
                facts = {name: run[name] for name in ("key", "status", "reason", "facts") if name in run}
                metrics = {m: value if math.isfinite(value) else None for m, value in run["metrics"].items()}
                spec = specs[run["key"]].model_dump(mode="json")
                made = run["provenance"] | ({"seconds": 1.5} if shas else {})
                parts = {"spec": spec, "metrics": metrics, "provenance": made, "files": shas}
                sealed_json.write(folder / "run.json", facts | parts)
        path = self.root / cell.path
        path.parent.mkdir(parents=True, exist_ok=True)
        listed = [{name: run[name] for name in ("seed", "key", "status")} for run in runs]
        path.write_text(json.dumps({"key": cell.key, "runs": listed}))
        return path

    def runs(self, cell: Cell) -> list[dict[str, Any]]:
        """Return the runs of a cell that :meth:`write` wrote, as it takes them."""
        paths = (
            self.root / "results" / "runs" / key / "run.json" for key in cell_files.keys(cell.path).values()
        )
        records = [sealed_json.read(path) for path in paths]
        return [{"seed": record["spec"]["seed"], **record} for record in records]

    def forget(self, runs: Iterable[RunSpec]) -> None:
        """Take runs out of the store, as if this machine had never trained them."""
        for run in runs:
            shutil.rmtree(self.root / "results" / "runs" / run.key, ignore_errors=True)

    def finish(self, cell: Cell, values: list[float], metric: str = "test_auc", **more: float) -> Path:
        """Write a finished result with one value per seed."""
        pairs = zip(cell.runs, values, strict=True)
        return self.write(cell, [run_result(spec.seed, spec.key, {metric: v, **more}) for spec, v in pairs])

    def finish_each(
        self, values: Callable[[Cell], list[float] | None], config: Config = REDUCED, target: str = "table1"
    ) -> None:
        """Finish the cells of a target that ``values`` gives a value for each seed of, and no others."""

        def make() -> None:
            for cell in cells:
                if known[cell.name]:
                    self.finish(cell, known[cell.name])

        cells = self.cells("localscgdam", target, config)
        known = {cell.name: values(cell) or [] for cell in cells}
        self.once(f"{target} {known} {config.model_dump_json()}", make)

    def fill(
        self, paper: str = "localscgdam", target: str = "table1", config: Config = REDUCED,
        metrics: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Finish every cell of a target with plausible, repeatable numbers, curves included."""
        metrics = metrics or METRICS[paper]
        asked = f"{paper}/{target} {metrics} {config.model_dump_json()}"
        self.once(asked, lambda: self._fill(paper, target, config, metrics))

    def once(self, asked: str, make: Callable[[], object]) -> None:
        """Write files, or copy those that the same call wrote in a project with the same files."""
        before = self._content()
        same = sha256(repr((asked, sorted(before.items()))).encode()).hexdigest()
        if same not in MADE:
            make()
            MADE[same] = {path: text for path, text in self._content().items() if before.get(path) != text}
            return
        for path, content in MADE[same].items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(content)

    def _content(self) -> dict[str, bytes]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def _fill(self, paper: str, target: str, config: Config, metrics: tuple[str, ...]) -> None:
        for cell in self.cells(paper, target, config):
            runs = []
            for spec in cell.runs:
                draw = stream(spec.seed, cell.name)
                level = 0.85 + 0.03 * (cell.method == "LocalSCGDAM") + 0.02 * draw.standard_normal()
                metrics_of = {metric: round(float(level), 6) for metric in metrics}
                metrics_of |= {f"device_mean_{metrics[0]}": level, f"device_var_{metrics[0]}": 2e-7}
                runs.append(run_result(spec.seed, spec.key, metrics_of))
                self.curve(spec.key, level, metrics, draw)
            self.write(cell, runs)

    def curve(self, key: str, level: float, metrics: tuple[str, ...], draw: np.random.Generator) -> Path:
        """Write a run's curve that rises from 0.5 to ``level`` over 21 evaluations."""
        steps = np.arange(21) * 50
        rise = [level - (level - 0.5) * math.exp(-s / 200) + 0.01 * draw.standard_normal() for s in steps]
        return self.write_curve(
            key, {"iteration": steps, "round": steps // 4, **dict.fromkeys(metrics, rise)}
        )

    def write_curve(self, key: str, columns: Any) -> Path:
        path = self.root / "results" / "runs" / key / "curve.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns).to_csv(path, index=False)
        return path


def table_of(config: Config = REDUCED, paper: str = "localscgdam", name: str = "table1") -> Table:
    """The table of what is in the folder that is worked in."""
    return tables.table_of(Plan(config, paper), name)


def dumped(content: dict[str, Any]) -> str:
    """Write YAML, in C where PyYAML has it."""
    return yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)


def run_result(
    seed: int, key: str, metrics: dict[str, float], status: str = "finished", reason: str = ""
) -> dict[str, Any]:
    made = {"commit": "0123456789ab", "versions": {"numpy": "2.4"}, "hardware": "2 cores"}
    ended = {"seed": seed, "key": key, "status": status, "metrics": metrics, "reason": reason}
    return ended | {"provenance": made}


def cell_of(project: Project, dataset: str, method: str, p: int = 4) -> Cell:
    return next(c for c in project.cells() if (c.dataset, c.method, c.setting["p"]) == (dataset, method, p))


def line(text: str, start: str, after: str = "") -> str:
    """The first line that starts with ``start`` after the line that holds ``after``."""
    lines = text[text.index(after) :].splitlines()
    return next(found for found in lines if found.lstrip("| ").startswith(start))
