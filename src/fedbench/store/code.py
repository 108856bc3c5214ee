"""The code that a run's numbers come from, as a digest: comments, docstrings and layout do not count.

It covers the method, task, network and partition rule of a run, the engine, and all that these import of the
packages below; of a method of another package, of its own modules. What prepares data is left out, since a run records
the checksum of its data, and so are the specifications, which its key covers. A digest says that code differs, not that
numbers do: a renamed function is other code.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec, resolve_name
from pathlib import Path

from fedbench.spec import RunSpec

LIBRARY = Path(__file__).parents[1]
PACKAGES = (
    "algorithms", "data", "engine", "method", "models", "net", "objectives", "problem", "random", "task", "tasks",
)  # fmt: skip
"""What makes numbers; of ``data`` what makes clients and batches of prepared arrays."""
PREPARING = tuple(f"fedbench.data.{name}" for name in ("datasets", "files", "multi_source", "prepared"))
ALWAYS = ("fedbench.engine.simulate", "fedbench.data.partition")
DEFAULT_TASK = "classification"
NAMED = 4
"""Cells that a line names; more are counted."""


def digest_of(run: RunSpec) -> str:
    """Return a digest of the code that a run is made by today."""
    task = run.task.name if run.task else DEFAULT_TASK
    return _digest(run.method, task, run.network.name, run.data.partition.rule)


def differs(run: RunSpec, recorded: str | None) -> bool:
    """Say whether a run was made by other code than today's; of one that does not record it nothing is known."""
    return recorded is not None and recorded != digest_of(run)


def remark(made: Mapping[str, Sequence[bool]]) -> str:
    """Say in one line how many runs other code made, and of what cells, by name; nothing where there is none."""
    other = [name for name, runs in made.items() if any(runs)]
    if not other:
        return ""
    more = f" and {len(other) - NAMED} more" if len(other) > NAMED else ""
    return (
        f"note: other code made {sum(sum(runs) for runs in made.values())} runs of {', '.join(other[:NAMED])}{more}; "
        "`fedbench forget --other-code` drops such runs of every study and scale (with a PATTERN of some cells), "
        "and they are trained again"
    )


@functools.lru_cache(maxsize=1024)
def _digest(method: str, task: str, network: str, rule: str) -> str:
    named = {"algorithms": method, "tasks": task, "models": network, "data.partitions": rule}
    waiting = [*ALWAYS, *(_module(f"fedbench.{package}", name) for package, name in named.items())]
    modules = dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name not in modules and (path := _file(name)) is not None:
            modules[name], imported = _read(path, name)
            waiting += [other for other in imported if _makes_numbers(other, name)]
    return hashlib.sha256(repr(sorted(modules.items())).encode()).hexdigest()[:12]


def _module(package: str, name: str) -> str:
    """Return the module of a thing: ours, or that of an entry point of another package."""
    offered = (entry.module for entry in entry_points(group=package) if entry.name == name)
    return f"{package}.{name}" if _file(f"{package}.{name}") else next(offered, "")


def _makes_numbers(module: str, by: str) -> bool:
    """Say whether what the module ``by`` imports counts: of the library what makes numbers, else its own package."""
    if not module.startswith("fedbench."):
        return module.partition(".")[0] == by.partition(".")[0] != "fedbench"
    return module.split(".")[1] in PACKAGES and not module.startswith(PREPARING)


def _file(module: str) -> Path | None:
    """Return the file of a module, without importing it; None where there is no such module."""
    package, *parts = module.split(".")
    root = LIBRARY
    if package != "fedbench":
        spec = find_spec(package) if package else None
        if spec is None:
            return None
        root = Path(next(iter(spec.submodule_search_locations or ()), str(spec.origin))).with_suffix("")
    place = root.joinpath(*parts)
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@functools.lru_cache(maxsize=1024)
def _read(path: Path, module: str) -> tuple[str, tuple[str, ...]]:
    """Return a digest of what a module says, and the modules that it may import."""
    text = path.read_bytes()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    try:
        tree = ast.parse(text)
        imported = dict.fromkeys(name for node in ast.walk(tree) for name in _imported(node, package))
    except (SyntaxError, ImportError):  # in the middle of an edit: training would say so
        return hashlib.sha256(text).hexdigest(), ()
    return hashlib.sha256("\n".join(_words(tree)).encode()).hexdigest(), tuple(imported)


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """Yield modules that a statement in a package imports; of ``from x import y`` also x.y, which may be one."""
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package)
        yield base
        yield from (f"{base}.{name.name}" for name in node.names)


def _words(node: ast.AST) -> Iterator[str]:
    """Yield what a syntax tree says, in its order and without docstrings, alike for every version of Python."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        if name in ("kind", "type_comment") or value is None or value == []:
            continue
        yield name
        for item in value if isinstance(value, list) else [value]:
            match item:
                case ast.Expr(ast.Constant(str())):
                    pass
                case ast.AST():
                    yield from _words(item)
                case _:
                    yield repr(item)
