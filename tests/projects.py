"""A small copy of the project in a temporary folder, run with the real Snakemake."""

from __future__ import annotations

import csv
import functools
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from forks import stand_ins

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PARTS = ("workflow", "profiles", "config", "data_prep")
TABLE = "tables/localscgdam/table1"
OWN = ("tables/table1.tex", "tables/table1.csv", "tables/table1.md", "tables/table1.macros.tex")


class Project:
    """The project's files under ``root``, cut down to one table of two cells that train in seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @functools.cached_property
    def programs(self) -> Path:
        """The folder of the programs that it runs; set it to ``BIN`` for real ones (forks.py)."""
        return stand_ins()

    @classmethod
    def fresh(cls, root: Path) -> Project:
        """Copy the project, add the scale ``tiny`` and shorten the paper's Table 1."""
        root.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "Snakefile", root)
        for part in PARTS:
            shutil.copytree(ROOT / part, root / part)
        shutil.rmtree(root / "config/tuned", ignore_errors=True)
        shutil.copytree(ROOT / "published", root / "published")
        project = cls(root)
        tiny = {"datasets": ["Digits"], "stand_in": "Digits"}
        tiny["train"] = {"epochs": None, "iterations": 12, "evaluations": 3}
        project.write(
            "config/scales/tiny.yaml", {"description": "", "seeds": [0, 1], "papers": {"localscgdam": tiny}}
        )
        with project.edit("config/papers/localscgdam.yaml") as paper:
            paper["tables"]["table1"] |= {"methods": ["LocalSGDAM", "LocalSGDM"], "settings": {"p": [4]}}
            paper["figures"]["figure1"]["methods"] = ["LocalSGDAM", "LocalSGDM"]
            paper["claims"] = []
        with project.edit("config/config.yaml") as config:
            config |= {"scale": "tiny", "device": "cpu"}
        return project

    def write(self, path: str, content: Any) -> None:
        (self.root / path).write_text(yaml.safe_dump(content, sort_keys=False))

    def edit(self, path: str) -> _Edit:
        """Open a YAML file of the project for changes that are written back at the end of the block."""
        return _Edit(self, path)

    def snakemake(self, *arguments: str, fails: bool = False) -> str:
        """Run Snakemake with the shipped profile, check how it ends, and return all it said."""
        command = [self.programs / "snakemake", *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, said
        return said

    def environment(self) -> dict[str, str]:
        """The caller's environment, less two things that would make the runs of one test session differ.

        The virtual environment's folder: the workflow has to find its own programs. The repository: its commit
        stands in every table and may move on while the tests run.
        """
        path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != BIN]
        return {**os.environ, "PATH": os.pathsep.join(path), "GIT_DIR": str(self.root / "no-repository")}

    def runs(self) -> dict[str, tuple[str, int]]:
        """The finished runs by key: their method, and when they were made."""
        collected = {}
        for path in self.root.glob("results/runs/*/run.json"):
            spec = yaml.safe_load(path.read_text())["spec"]
            collected[path.parent.name] = (f"{spec['method']} {spec['seed']}", path.stat().st_mtime_ns)
        return collected

    def curves(self) -> dict[str, bytes]:
        return {path.parent.name: path.read_bytes() for path in self.root.glob("results/runs/*/curve.csv")}

    def table(self) -> dict[str, dict[str, str]]:
        """The rows of Table 1 that belong to the digits, by method."""
        with (self.root / f"{TABLE}.csv").open() as file:
            return {row["method"]: row for row in csv.DictReader(file) if row["dataset"] == "Digits"}


class _Edit:
    def __init__(self, project: Project, path: str) -> None:
        self.project, self.path = project, path

    def __enter__(self) -> Any:
        self.content = yaml.load((self.project.root / self.path).read_text(), yaml.CSafeLoader)
        return self.content

    def __exit__(self, *_: object) -> None:
        self.project.write(self.path, self.content)


def jobs(said: str) -> Counter[str]:
    """Count the jobs that Snakemake finished, by rule."""
    lines = [line for line in said.splitlines() if line.startswith("Finished jobid")]
    return Counter(line.partition("Rule: ")[2].rstrip(")") for line in lines)


def fedbench(project: Project, *arguments: str) -> str:
    """Run a command of the library in the project and return what it printed."""
    command = [project.programs / "fedbench", *arguments]
    return subprocess.run(
        command, cwd=project.root, env=project.environment(), capture_output=True, text=True, check=True
    ).stdout
