"""What is installed, imported, released and cleaned; what a wheel does in an empty folder and in a project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fedbench import __version__, project
from fedbench.store.provenance import sources
from fedbench.study.configuration import load_paper, paper_keys
from projects import BIN, ROOT

CELL = "localscgdam/Digits/p4_imratio0.1/CoDA"
SHORT = ("--set", "seeds=0", "--set", "train.iterations=4", "--set", "train.evaluations=1")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel is installed in; its dependencies are those of the tests."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)], check=True
    )
    (wheel,) = wheels.glob("fedbench_suite-*.whl")
    subprocess.run([*pip, "install", *alone, "--target", str(site), str(wheel)], check=True)
    assert not any(".pyc" in name for name in zipfile.ZipFile(wheel).namelist())
    return site


def call(site: Path, folder: Path, *command: str, fails: bool = False) -> tuple[str, str]:
    """Run a program in a folder with the installed fedbench; return what it wrote to both streams."""
    variables = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout, done.stderr


def fedbench(site: Path, folder: Path, *arguments: str, fails: bool = False) -> tuple[str, str]:
    return call(site, folder, sys.executable, "-m", "fedbench", *arguments, fails=fails)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_commands_work_in_an_empty_folder_and_write_there_alone(installed: Path, tmp_path: Path) -> None:
    before = contents(installed)
    listed, noted = fedbench(installed, tmp_path, "list")
    assert CELL in listed and "papers: arena, check, climb" in listed
    assert str(installed / "fedbench/project") in noted and "fedbench init" in noted
    trained, _ = fedbench(installed, tmp_path, "run", CELL, *SHORT)
    assert "seed 0: finished" in trained
    (run,) = tmp_path.glob("results/runs/*/run.json")
    commit = json.loads(run.read_text())["provenance"]["commit"]
    assert commit.endswith(f"-{sources(ROOT / 'src/fedbench')}"), "a checkout's code has the same digest"
    shown, _ = fedbench(installed, tmp_path, "show", "table1", "--scale", "reduced")
    assert "LocalSGDAM" in shown and "0.982‡" in shown and "0.977" in shown
    claims, _ = fedbench(installed, tmp_path, "claims", "climb")
    assert "CLIMB" in claims
    fedbench(installed, tmp_path, "table", "localscgdam/table1", "--scale", "reduced")
    made = contents(tmp_path / "tables")
    assert b"0.977" in made["localscgdam/table1.md"]
    assert b"reproduced/reduced/" in made["localscgdam/table1.csv"]
    place = str(installed).encode()
    assert not any(place in content for content in made.values()), "no place of this machine"
    assert {path.name for path in tmp_path.iterdir()} <= {"data", "results", "tables"}
    assert contents(installed) == before


def test_what_is_installed_is_not_changed_and_a_configuration_makes_a_project(
    installed: Path, tmp_path: Path
) -> None:
    for command in (("tune", "Digits"), ("export", "table1")):
        _, error = fedbench(installed, tmp_path, *command, fails=True)
        assert error.startswith("error: ") and "fedbench init" in error and error.count("\n") == 1
        assert not any(tmp_path.iterdir())
    (tmp_path / "config").mkdir()
    _, error = fedbench(installed, tmp_path, "list", fails=True)
    assert "config/config.yaml does not exist" in error and "note:" not in error


def test_a_copy_is_a_project_in_which_snakemake_runs(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    fedbench(installed, tmp_path, "init", "mine")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", *project.PARTS], capture_output=True, text=True, check=True
    ).stdout.split()
    assert contents(folder) == contents(installed / "fedbench/project")
    assert {*contents(folder)} == {*listed} != set()
    with (folder / "config/papers/localscgdam.yaml").open() as file:
        paper = yaml.safe_load(file)
    paper["tables"]["table1"] |= {"methods": ["CoDA", "LocalSGDM"], "settings": {"p": [4]}}
    (folder / "config/papers/localscgdam.yaml").write_text(yaml.safe_dump(paper | {"claims": []}))
    kept = folder / "config/config.yaml"
    tiny = {"description": "", "seeds": [0], "papers": {"localscgdam": {"datasets": ["Digits"], "train": {
        "iterations": 16, "epochs": None, "evaluations": 1}}}}  # fmt: skip
    (folder / "config/scales/tiny.yaml").write_text(yaml.safe_dump(tiny))
    kept.write_text(kept.read_text() + "\n# changed\n")
    command = (str(BIN / "snakemake"), "--cores", "2", "tables/table1.md", "--config", "scale=tiny")
    call(installed, folder, *command)
    assert "CoDA" in (folder / "tables/table1.md").read_text()

    (folder / "Snakefile").unlink()
    _, error = fedbench(installed, folder, "init", fails=True)
    assert error.startswith("error: config/config.yaml exists") and error.count("\n") == 1
    assert kept.read_text().endswith("# changed\n") and not (folder / "Snakefile").exists()


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
    released = (__version__, str(CITATION["date-released"]))
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


KEPT = ["published/climb/a.csv", "tables/gallery/climb/table1.md", "figures/gallery/climb/figure1.svg"]
KEPT += ["data/raw/a", "results/runs/a/run.json", "config/config.yaml"]
BUILT = ["tables/table1.tex", "tables/climb/table2.pdf", "figures/climb/figure1.svg"]
BUILT += ["report.html", "logs/a.log"]


def test_clean_removes_what_was_built_here_and_keeps_the_examples(tmp_path: Path) -> None:
    for path in (tmp_path / name for name in (*KEPT, *BUILT)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*KEPT, "Makefile"} and not (tmp_path / "tables/climb").exists()
