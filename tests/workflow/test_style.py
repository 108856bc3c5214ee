"""The linters are clean: Python, Snakemake, types, the citation, and imports go down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FORMS = sorted(str(path) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "format", "--no-cache", "--check", "."],
        ["snakefmt", "--check", "workflow"],
        ["snakemake", "--lint"],
        ["mypy"],
        ["lint-imports", "--no-cache"],
        ["check-jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff"],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", ".github/workflows/test.yml"],
        ["check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *FORMS],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_linter_is_clean(command: list[str]) -> None:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
