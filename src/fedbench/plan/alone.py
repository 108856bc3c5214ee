"""The command that makes one cell by itself, as the call that made it did."""

from __future__ import annotations

import json
import shlex

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Config

SHOWN_ONLY = {"scale", "paper", "tolerance", "shipped", "set"}
"""Keys that change no run, or are said apart."""


def command(cell: Cell, config: Config, file: Config) -> str:
    """Return the command that trains one cell alone, with what a call's ``config`` lays over the ``file``."""
    given, kept = (each.model_dump(exclude=SHOWN_ONLY) for each in (config, file))
    if given["datasets"] != kept["datasets"]:
        given["datasets"] = [cell.dataset]
    laid = {name: value for name, value in given.items() if value != kept[name]} | config.set
    sets = [f"--set {shlex.quote(f'{name}={json.dumps(value)}')}" for name, value in laid.items()]
    return " ".join(["fedbench run", shlex.quote(cell.name), f"--scale {cell.scale}", *sets])
