"""The architecture page names every room of the library, each once, in the order that import-linter checks."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/background/developers/architecture.md").read_text()


def named() -> list[list[str]]:
    """The rooms in the first column of the first table, line by line."""
    table = next(part for part in TEXT.split("\n\n") if part.startswith("| room |"))
    return [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines()[2:]]


def layers() -> list[list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [re.split(r" : ", layer) for layer in contracts[0]["layers"]]


def test_the_rooms_are_those_of_the_code() -> None:
    package = ROOT / "src/fedbench"
    names = {path.stem for path in package.glob("*.py") if path.stem != "__init__"}
    names |= {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    rooms = [room for line in named() for room in line]
    assert sorted(rooms) == sorted(names)


def test_they_stand_in_the_order_that_is_checked() -> None:
    flat = [room for line in named() for room in line]
    order = [room for layer in layers() for room in layer]
    place = {room: at for at, layer in enumerate(layers()) for room in layer}
    assert [place[room] for room in flat] == sorted(place[room] for room in order)


def test_files_that_it_names_exist() -> None:
    for path in re.findall(r"`((?:src|tests|config|workflow|data_prep)/[\w./]+\.\w+)`", TEXT):
        assert (ROOT / path).exists(), path
    rooms = "|".join(room for line in named() for room in line)
    for path in re.findall(rf"`((?:{rooms})/[\w/]*?(?:\.py)?)`", TEXT):
        assert (ROOT / "src/fedbench" / path).exists(), path


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
