"""The linters are clean, imports go down as the architecture page says, names say what they hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
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


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples", "data_prep"])
def test_names_say_what_they_hold(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in named(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in EMPTY
    ]
    assert files and not bad, bad


TEXT = (ROOT / "docs/background/developers/architecture.md").read_text()


TABLE = next(part for part in TEXT.split("\n\n") if part.startswith("| room |"))
ROOMS = [room for line in TABLE.splitlines()[2:] for room in re.findall(r"`(\w+)`", line.split("|")[1])]
"""In the order of the page."""


def test_the_rooms_are_those_of_the_code_in_the_order_that_is_checked() -> None:
    package = ROOT / "src/fedbench"
    names = {path.stem for path in package.glob("*.py") if path.stem != "__init__"}
    names |= {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    assert sorted(ROOMS) == sorted(names)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    place = {room: at for at, layer in enumerate(contracts[0]["layers"]) for room in layer.split(" : ")}
    assert [place[room] for room in ROOMS] == sorted(place.values())


def test_files_that_it_names_exist() -> None:
    named = re.findall(r"`((?:src|tests|config|workflow|data_prep)/[\w./]+\.\w+)`", TEXT)
    inside = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/]*?(?:\.py)?)`", TEXT)
    paths = [*named, *(f"src/fedbench/{path}" for path in inside)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


LONGEST = 40
"""Lines of a function, its docstring included."""


def test_no_function_is_long() -> None:
    package = ROOT / "src/fedbench"
    long = {
        f"{path.relative_to(package)}: {node.name}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LONGEST
    }
    assert long == set()
