"""What is installed, imported, released and cleaned: pyproject.toml, lock, conda, containers, citation, Makefile."""

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

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
WANTED = [
    *PROJECT["dependencies"],
    *(item for extra in PROJECT["optional-dependencies"].values() for item in extra),
]
LOCK = (ROOT / "requirements.lock").read_text()
PINS: dict[str, list[tuple[str, str]]] = {}
for name, version, marker in re.findall(r"^([\w.-]+)==([^\s;]+)(?: ; (.*?))? \\$", LOCK, flags=re.M):
    PINS.setdefault(canonicalize_name(name), []).append((version, marker))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_lock_pins_what_pyproject_asks_for() -> None:
    for wanted in map(Requirement, WANTED):
        pins = PINS.get(canonicalize_name(wanted.name))
        assert pins, f"{wanted.name} is not in requirements.lock: run `make lock`"
        assert all(wanted.specifier.contains(version) for version, _ in pins), (wanted, pins)


def test_the_lock_has_a_hash_for_every_package_and_no_addresses() -> None:
    entries = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.M)[1:]
    assert len(entries) == sum(map(len, PINS.values())) > len(WANTED)
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.search(r"https?:|file:|--index|--find-links|--trusted-host| @ ", LOCK)
    for name, pins in PINS.items():  # once, or once per Python
        split = [marker for _, marker in pins if "python_full_version" in (marker or "")]
        assert len(pins) == 1 or len(split) == len(pins), f"{name} is pinned twice: {pins}"


@pytest.mark.parametrize("path", ["environment.yml", "workflow/envs/fedbench.yaml"])
def test_conda_users_get_the_lock(path: str) -> None:
    packages = yaml.safe_load((ROOT / path).read_text())["dependencies"]
    python = Requirement(
        next(item for item in packages if isinstance(item, str) and item.startswith("python"))
    )
    assert python.specifier.contains("3.11.0") and not python.specifier.contains("3.10.9")
    assert PROJECT["requires-python"] == ">=3.11"
    named = {item.split()[0] for item in packages if isinstance(item, str)}
    assert named <= {"python", "pip", "make"}, "versions belong in requirements.lock, nowhere else"
    if path == "environment.yml":
        assert packages[-1] == {"pip": ["-r requirements.lock"]}
    else:
        script = (ROOT / path).with_suffix(".post-deploy.sh").read_text()
        assert "--require-hashes -r requirements.lock" in script


def test_the_apptainer_image_has_what_setup_reads() -> None:
    image = (ROOT / "containers/fedbench.def").read_text()
    copied = dict(re.findall(r"^    (\S+) /fedbench/(\S+)$", image, flags=re.M))
    assert all(name == at and (ROOT / name).exists() for name, at in copied.items())
    packed = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    always = {"Makefile", "requirements.lock", "pyproject.toml", "src"}
    assert set(copied) == always | {PROJECT["readme"], *PROJECT["license-files"], *packed}


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


KEPT = """published/climb/a.csv tables/gallery/climb/table1.md figures/gallery/climb/figure1.svg data/raw/a
results/runs/a/run.json config/config.yaml"""
BUILT = """tables/table1.tex tables/table1.json tables/climb/table2.pdf figures/climb/figure1.svg report.html
logs/a.log"""


def test_clean_removes_what_was_built_here_and_keeps_the_examples(tmp_path: Path) -> None:
    for path in (tmp_path / name for name in (*KEPT.split(), *BUILT.split())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*KEPT.split(), "Makefile"} and not (tmp_path / "tables/climb").exists()
