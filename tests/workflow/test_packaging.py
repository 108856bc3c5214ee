"""What is installed, imported, released and cleaned: pyproject.toml, lock, citation, Makefile."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fedbench
from fedbench.study.configuration import load_paper, paper_keys
from projects import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_lock_pins_what_pyproject_asks_for() -> None:
    pinned = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), flags=re.M)
    for wanted in map(Requirement, sum(PROJECT["optional-dependencies"].values(), PROJECT["dependencies"])):
        name = canonicalize_name(wanted.name)
        pins = [version for other, version in pinned if canonicalize_name(other) == name]
        assert pins, f"{wanted.name} is not in requirements.lock: run `make lock`"
        assert all(wanted.specifier.contains(version) for version in pins), (wanted, pins)


def test_what_is_cited_is_the_release_and_the_papers_that_are_rebuilt() -> None:
    zenodo, changelog = json.loads((ROOT / ".zenodo.json").read_text()), (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## \[(.*?)\](?: - (\S+))?$", changelog, flags=re.M)
    released = (fedbench.__version__, str(CITATION["date-released"]))
    assert sections[0] == ("Unreleased", "") and sections[1] == released
    assert CITATION["version"] == zenodo["version"] == released[0]
    assert zenodo["publication_date"] == released[1]
    for ours, theirs in {"title": "title", "license": "license", "abstract": "description"}.items():
        assert CITATION[ours] == zenodo[theirs]
    papers = [load_paper(key) for key in paper_keys() if key != "check"]  # beside numbers of our own
    rebuilt = {paper.title for paper in papers if any(table.published for table in paper.tables.values())}
    assert {paper["title"] for paper in CITATION["references"]} == rebuilt
    for said, paper in zip(zenodo["references"], CITATION["references"], strict=True):
        assert said.endswith(f": {paper['title']} ({paper['year']})")


EACH_MODULE = """
import importlib, pkgutil, sys
sys.modules |= {"snakemake": None, "torchvision": None}  # importing these now fails
import fedbench
names = [info.name for info in pkgutil.walk_packages(fedbench.__path__, "fedbench.")]
for name in names:
    importlib.import_module(name)
from fedbench.models.resnet20 import build
build((3, 32, 32), 1)
assert len(names) > 20
"""
ALONE = "import fedbench, sys; assert not {'torch', 'pandas'} & set(sys.modules)"


@pytest.mark.parametrize("program", [EACH_MODULE, ALONE], ids=["each module", "alone"])
def test_it_imports_without(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


KEPT = [
    "published/climb/a.csv",
    "tables/gallery/climb/table1.md",
    "figures/gallery/climb/figure1.svg",
    "data/raw/a",
]
KEPT += ["results/runs/a/run.json", "config/config.yaml"]
BUILT = [
    "tables/table1.tex",
    "tables/climb/table2.pdf",
    "figures/climb/figure1.svg",
    "report.html",
    "logs/a.log",
]


def test_clean_removes_what_was_built_here_and_keeps_the_examples(tmp_path: Path) -> None:
    for path in (tmp_path / name for name in (*KEPT, *BUILT)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*KEPT, "Makefile"} and not (tmp_path / "tables/climb").exists()
