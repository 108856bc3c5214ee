"""What is installed and released: pyproject.toml, the lock, conda, containers and citation say the same thing."""

from __future__ import annotations

import json
import re
import tomllib

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
