"""What the commands have in common: their options, and the configuration and names they are read as."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbench import project
from fedbench.errors import UserError, shortened
from fedbench.study import configuration, layers
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.workflow import requests

ScaleOption = Annotated[str | None, typer.Option(help="demo, reduced or paper; default: the configuration's")]
PaperOption = Annotated[str | None, typer.Option(help="a paper's key; default: the configuration's")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="a key of config/config.yaml, or a value of a run by its path (train.iterations), for this call",
    ),
]
TargetArgument = Annotated[str, typer.Argument(help="climb/table2, or table2 of the configuration's paper")]
NotesOption = Annotated[bool, typer.Option("--notes", help="all notes, not only the first ones")]
RequestOption = Annotated[
    Path | None, typer.Option(help="the workflow's request, in place of --scale and --set", hidden=True)
]
CoresOption = Annotated[str, typer.Option(help="how many runs are trained at a time, or all: one per core")]


def configured(
    scale: str | None, paper: str | None, overrides: list[str] | None, request: Path | None = None
) -> Config:
    """Read the configuration with this call's options laid over it, or those of a request of the workflow."""
    if not project.is_here():
        print(f"note: no config/ here: using {project.SOURCE}; `fedbench init` copies it", file=sys.stderr)
    if request is not None:
        return configuration.load_config(overrides=requests.config_of(request))
    given: dict[str, Any] = {"scale": scale, "paper": paper}
    for key, value in map(layers.assigned, overrides or []):
        if "." in key or key in layers.ROOTS:  # a place of a run, not a key of the configuration
            given["set"] = layers.given(given.get("set") or {}) | {key: value}
        else:
            given[key] = value
    return configuration.load_config(given, "--set")


def cores_of(text: str) -> int:
    """Read a number of cores; ``all`` are those that this process may use."""
    if text == "all":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1024):
        raise UserError(f"--cores takes a number from 1 to 1024, or all, not {shortened(text)!r}")
    return int(text)


def planned(text: str, config: Config, kind: str = "") -> tuple[Plan, str]:
    """Read PAPER/NAME, or NAME of the configured paper; of a ``kind``, tables or figures. Return the plan and the name.

    Raises:
        UserError: it is the name of another kind of thing, with the command that takes it.
    """
    paper, slash, name = text.partition("/")
    paper, name = (paper, name) if slash else (config.paper, text)
    plan = Plan(config, paper)
    if kind == "table" and name in plan.study.figures:
        raise UserError(f"{name} is a figure of {paper}: `fedbench figure {paper}/{name}` draws it")
    if kind == "figure" and name in plan.study.tables:
        raise UserError(f"{name} is a table of {paper}: `fedbench table {paper}/{name}` builds it")
    if name == "claims":
        raise UserError(f"`fedbench claims {paper}` prints them, with --write it builds their table")
    return plan, name
