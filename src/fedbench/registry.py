"""Names to things: one file in a folder is one thing; a separate package can add more through entry points."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import json
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fedbench.errors import UserError, unknown

Built = TypeVar("Built")
STRICT = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)


def names(package: ModuleType) -> list[str]:
    """List what a package offers: its own modules and the entry points of the group with its name."""
    modules = [name for name in _modules(package) if not name.startswith("_")]
    return sorted({*modules, *(entry.name for entry in _offered(package.__name__))})


def find(package: ModuleType, kind: str, name: str, attribute: str) -> Any:
    """Return ``attribute`` of the module called ``name``, or the object an entry point of that name gives.

    Raises:
        UserError: no module offers ``name`` (the message lists the known ones), its file has a mistake, or lacks
            ``attribute``.
    """
    if name in _modules(package):
        try:
            module = importlib.import_module(f"{package.__name__}.{name}")
        except Exception as error:  # whatever the import of a file with a mistake raises
            raise UserError(f"{kind} {name!r}: {place(error)}") from error
        if not hasattr(module, attribute):
            raise UserError(f"{module.__file__} has to define {attribute!r} to be a {kind}")
        return getattr(module, attribute)
    entry = next((entry for entry in _offered(package.__name__) if entry.name == name), None)
    if entry is not None:
        try:
            return entry.load()
        except Exception as error:
            raise UserError(f"{kind} {name!r} of the package {_package(entry)}: {place(error)}") from error
    raise unknown(kind, name, names(package))


def place(error: Exception, file: str = "") -> str:
    """Say what is wrong, and in which line where a file that was imported, or ``file``, has a mistake."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    if not (
        files := [frame.filename for frame in frames if frame.name == "<module>" or frame.filename == file]
    ):
        return str(error)
    # not of a library that it calls
    lines = [frame.lineno for frame in frames if frame.filename == files[-1]]
    return f"{files[-1]}, line {lines[-1]}: {type(error).__name__}: {error}"


def filled(kind: Any, base: type[Built], label: str, word: str, values: Mapping[str, Any]) -> Built:
    """Build an object of a class from configured values, one for each of its fields that has no default.

    Args:
        kind: what :func:`find` returned: a frozen dataclass derived from ``base``.
        base: what it has to be.
        label: what messages call it, e.g. ``method 'fedavg'``.
        word: what messages call a field, e.g. ``hyper-parameter``.
        values: by field.

    Raises:
        UserError: it is no such class, or values are missing, misspelt, of a wrong kind or out of range.
    """
    derived = isinstance(kind, type) and issubclass(kind, base)
    made = vars(kind).get("__dataclass_params__") if derived else None  # not of the class it derives from
    if made is None or not made.frozen:
        cure = "; its file only imports it: define a class of your own by this name" if kind is base else ""
        raise UserError(
            f"{label}: {kind!r} has to be a {base.__name__} with @dataclass(frozen=True) above it{cure}"
        )
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    for key in values:
        if key not in fields:
            raise UserError(f"{label}: {unknown(word, key, fields)}")
    missing = sorted(
        name for name, default in fields.items() if default is dataclasses.MISSING and name not in values
    )
    if missing:
        raise UserError(f"{label} needs {', '.join(missing)}: write every {word} in the configuration")
    takes = fields_of(kind)
    for key, value in values.items():
        try:
            # as JSON, whose lists are tuples too
            takes[key].validate_json(json.dumps(value, default=str))
        except ValidationError as error:
            says = error.errors()[0]["msg"]
            raise UserError(f"{label}: {key}: {says} (got {value!r}){_as_number(value)}") from None
    built: Built = kind(**values)
    return built


@functools.lru_cache(maxsize=256)
def fields_of(kind: type) -> dict[str, TypeAdapter[Any]]:
    """Return what checks the fields of a dataclass by their annotations; a type that is not found takes anything."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:  # imported for type checkers alone
        hints = {}
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: TypeAdapter(hints.get(name, Any), config=STRICT) for name in names}


def _as_number(value: object) -> str:
    """Say how YAML reads ``1e-1`` as a number: with a point before the exponent."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+e[+-]?\d+", value, flags=re.IGNORECASE):
        return f"; YAML takes {value} for a text, write {float(value)!r}"
    return ""


def origins(package: ModuleType) -> dict[str, str]:
    """Say for each name that is not one of ours which package offers it."""
    modules = _modules(package)
    return {entry.name: _package(entry) for entry in _offered(package.__name__) if entry.name not in modules}


def _modules(package: ModuleType) -> frozenset[str]:
    """Return the names of the modules that lie in a package's folders now."""
    listed = {path: tuple(file.name for file in os.scandir(path)) for path in package.__path__}
    return frozenset().union(*itertools.starmap(_in_folder, listed.items()))


@functools.lru_cache(maxsize=256)
def _in_folder(path: str, _files: tuple[str, ...]) -> frozenset[str]:
    """Say which modules a folder with these files holds: 0.6 ms, and checking cells asks thousands of times."""
    return frozenset(info.name for info in pkgutil.iter_modules([path]))


def _offered(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group in the packages on today's path."""
    return _scanned(group, tuple(sys.path))


@functools.lru_cache(maxsize=64)
def _scanned(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read the metadata of every installed package once: 25 ms, and planning asks thousands of times."""
    return tuple(entry_points(group=group))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module
