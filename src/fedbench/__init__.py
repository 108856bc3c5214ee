"""fedbench: do the tables of federated-learning papers on imbalanced data hold, and how does your method compare?

``fedbench.cells`` and ``fedbench.run`` (:mod:`fedbench.api`) are the command line's work as functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbench.api import Result, cells, run

__version__ = "0.2.0"
__all__ = ["Result", "cells", "run"]


def __getattr__(name: str) -> Any:
    """Import the functions when they are first asked for: ``import fedbench`` stays quick."""
    if name in __all__:
        from fedbench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
