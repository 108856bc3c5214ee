"""Names to things: one file in a folder is one thing; a separate package can add more through entry points."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from fedbench.errors import UserError, unknown


def names(package: ModuleType) -> list[str]:
    """List what a package offers: its own modules and the entry points of the group with its name."""
    own = [info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_")]
    return sorted({*own, *(entry.name for entry in entry_points(group=package.__name__))})


def find(package: ModuleType, kind: str, name: str, attribute: str) -> Any:
    """Return ``attribute`` of the module called ``name``, or the object an entry point of that name gives.

    Raises:
        UserError: nobody offers ``name`` (the message lists who is known), or who does lacks ``attribute``.
    """
    if any(info.name == name for info in pkgutil.iter_modules(package.__path__)):
        module = importlib.import_module(f"{package.__name__}.{name}")
        if not hasattr(module, attribute):
            raise UserError(f"{module.__file__} has to define {attribute!r} to be a {kind}")
        return getattr(module, attribute)
    for entry in entry_points(group=package.__name__, name=name):
        try:
            return entry.load()
        except (ImportError, AttributeError) as error:
            raise UserError(f"{kind} {name!r} of the package {_package(entry)}: {error}") from error
    raise unknown(kind, name, names(package))


def origins(package: ModuleType) -> dict[str, str]:
    """Say for each name that is not one of ours which package offers it."""
    own = {info.name for info in pkgutil.iter_modules(package.__path__)}
    return {
        entry.name: _package(entry) for entry in entry_points(group=package.__name__) if entry.name not in own
    }


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module
