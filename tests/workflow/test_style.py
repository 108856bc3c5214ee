"""The linters are clean: Python, Snakemake, types, the citation, and imports go down; names say what they hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FORMS = sorted(str(path) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
WORKFLOWS = sorted(str(path) for path in (ROOT / ".github/workflows").glob("*.yml"))


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
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
        ["check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *FORMS],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_linter_is_clean(command: list[str]) -> None:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


EMPTY = {"found", "one", "each", "here", "there", "own", "whole", "joined"}
"""Words that say nothing of what a name holds; a comprehension may have them."""
CONTRACT = {"own", "each"}
"""Fields that users write: what clients keep of a method, and the settings at which all is tuned anew."""


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable outside comprehensions, parameter, function and class."""
    nodes = [*ast.walk(tree)]
    loops = [name for node in nodes if isinstance(node, ast.comprehension) for name in ast.walk(node.target)]
    annotated = [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    fields = [name for name in annotated if isinstance(name, ast.Name) and name.id in CONTRACT]
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in [*loops, *fields]:
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples", "data_prep", "workflow"])
def test_names_say_what_they_hold(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in named(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in EMPTY
    ]
    assert files and not bad, bad
