"""Names to things: one file in a folder is one thing; a separate package can add more through entry points."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from fedbench.errors import unknown


def names(package: ModuleType) -> list[str]:
    """List what a package offers: its own modules and the entry points of the group with its name."""
    own = [info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_")]
    return sorted({*own, *(entry.name for entry in entry_points(group=package.__name__))})


def find(package: ModuleType, kind: str, name: str, attribute: str) -> Any:
    """Return ``attribute`` of the module called ``name``, or the object an entry point of that name gives.

    Raises:
        UserError: nobody offers ``name``; the message lists who is known.
    """
    if any(info.name == name for info in pkgutil.iter_modules(package.__path__)):
        return getattr(importlib.import_module(f"{package.__name__}.{name}"), attribute)
    for entry in entry_points(group=package.__name__, name=name):
        return entry.load()
    raise unknown(kind, name, names(package))
