"""pyproject.toml, requirements.lock and environment.yml say the same thing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = [
    *PROJECT["dependencies"],
    *(item for extra in PROJECT["optional-dependencies"].values() for item in extra),
]
LOCK = (ROOT / "requirements.lock").read_text()
PINS: dict[str, list[tuple[str, str]]] = {}
for name, version, marker in re.findall(r"^([\w.-]+)==([^\s;]+)(?: ; (.*?))? \\$", LOCK, flags=re.M):
    PINS.setdefault(canonicalize_name(name), []).append((version, marker))


@pytest.mark.parametrize("wanted", WANTED)
def test_the_lock_pins_what_pyproject_asks_for(wanted: str) -> None:
    requirement = Requirement(wanted)
    pins = PINS.get(canonicalize_name(requirement.name))
    assert pins, f"{requirement.name} is not in requirements.lock: run `make lock`"
    assert all(requirement.specifier.contains(version) for version, _ in pins), (wanted, pins)


def test_the_lock_has_a_hash_for_every_package_and_no_addresses() -> None:
    entries = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.M)[1:]
    assert len(entries) == sum(map(len, PINS.values())) > len(WANTED)
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.search(r"https?:|file:|--index|--find-links|--trusted-host| @ ", LOCK)


def test_each_package_is_pinned_once_or_once_per_python() -> None:
    lowest = re.fullmatch(r">=(3\.\d+)", PROJECT["requires-python"])
    assert lowest and Version(lowest[1]) >= Version("3.11")
    for name, pins in PINS.items():
        for version, marker in pins:
            assert Version(version), (name, marker)
        split = [marker for _, marker in pins if "python_full_version" in (marker or "")]
        assert len(pins) == 1 or len(split) == len(pins), f"{name} is pinned twice: {pins}"


@pytest.mark.parametrize("path", ["environment.yml", "workflow/envs/fedbench.yaml"])
def test_conda_users_get_the_lock(path: str) -> None:
    packages = yaml.safe_load((ROOT / path).read_text())["dependencies"]
    python = Requirement(
        next(item for item in packages if isinstance(item, str) and item.startswith("python"))
    )
    assert python.specifier.contains("3.11.0") and not python.specifier.contains("3.10.9")
    named = {item.split()[0] for item in packages if isinstance(item, str)}
    assert named <= {"python", "pip", "make"}, "versions belong in requirements.lock, nowhere else"
    if path == "environment.yml":
        assert packages[-1] == {"pip": ["-r requirements.lock"]}
    else:
        script = (ROOT / path).with_suffix(".post-deploy.sh").read_text()
        assert "--require-hashes -r requirements.lock" in script
