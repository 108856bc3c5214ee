"""The architecture page names every room of the library, each once, in the order that import-linter checks."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
