"""What contributors read and what the forge runs name things that are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PYTHONS = ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "config/README.md"])
def test_links_lead_to_files(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert [target for target in targets if not (ROOT / name).parent.joinpath(target).exists()] == []


def test_paths_and_make_targets_of_contributing_exist() -> None:
    text, makefile = (ROOT / "CONTRIBUTING.md").read_text(), (ROOT / "Makefile").read_text()
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
