"""What contributors read and what the forge runs name things that are there."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PYTHONS = ["3.11", "3.12", "3.13"]
AT_THE_TOP = 12
"""Files that a visitor sees before the README."""


def test_few_files_lie_at_the_top() -> None:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True)
    assert len([name for name in listed.stdout.splitlines() if "/" not in name]) <= AT_THE_TOP


@pytest.mark.parametrize(
    "name",
    [".github/CONTRIBUTING.md", ".github/CODE_OF_CONDUCT.md", ".github/SECURITY.md", "config/README.md"],
)
def test_links_lead_to_files(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert [target for target in targets if not (ROOT / name).parent.joinpath(target).exists()] == []


def test_paths_and_make_targets_of_contributing_exist() -> None:
    text, makefile = (ROOT / ".github/CONTRIBUTING.md").read_text(), (ROOT / "Makefile").read_text()
    for path in re.findall(r"tests/[\w/.]+", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"make ([a-z][a-z0-9-]*)", text):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_the_forge_runs_what_we_run_on_every_python_that_is_allowed() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    assert jobs["fast"]["strategy"]["matrix"]["python"] == PYTHONS
    runs = {name: job["steps"][-1]["run"] for name, job in jobs.items()}
    assert runs == {"fast": "bash .ci/run fast", "all": "bash .ci/run"}
    script = (ROOT / ".ci/run").read_text()
    assert "exec make test-fast" in script and script.endswith("make test\nmake test-cluster\n")
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    allowed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][0]
    assert lowest == f">={PYTHONS[0]}" and allowed == f"python >={PYTHONS[0]},<3.14"
