"""What the documentation shows, written from what is shipped: tables, claims, what commands print."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from typer.testing import CliRunner

from fedbench import algorithms, models, registry
from fedbench.commands.cli import app
from fedbench.data import datasets
from fedbench.report import claims
from fedbench.report import tables as build
from fedbench.report.document import Table
from fedbench.report.text import cells_of
from fedbench.results.names import SLOPE, axis_name
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, TableSpec

ROOT = Path(__file__).parents[1]
CONTROL = "untrained"
"""The method that learns nothing."""


@cache
def _folder() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    for part in ("config", "published", "reproduced"):
        (Path(folder.name) / part).symlink_to(ROOT / part)
    return folder


@contextmanager
def elsewhere() -> Iterator[None]:
    """Work in a folder with configuration, published numbers and reference results, without runs of this machine."""
    with chdir(_folder().name):
        yield


@cache
def studied(paper: str) -> Plan:
    """Return a plan of a study, whose YAML is read once; its ``at`` has those at each scale."""
    return Plan(Config(), paper)


@cache
def made(of: str) -> Table:
    """Return the table ``paper/table@scale`` on all datasets of its study, from shipped numbers alone."""
    place, _, scale = of.partition("@")
    paper, _, table = place.partition("/")
    with elsewhere():
        plan = studied(paper)
        return build.table_of(plan.at(Config(scale=scale, datasets=[*plan.study.datasets])), table)


@cache
def shipped(of: str) -> pd.DataFrame:
    """Return what is shipped of ``paper/table@scale``, of several with ``+``: a row for each number."""
    if "+" in of:
        return pd.concat(map(shipped, of.split("+")), ignore_index=True)
    rows, scale = made(of).rows, of.partition("@")[2]
    rows = rows[rows["shipped"] & (rows["scale"] == scale)].copy()
    for column in rows.columns[: rows.columns.get_loc("metric")]:
        rows[column] = rows[column].astype(str).str.removesuffix(".0")
    if "rank_best" in rows:
        rows["rank"] = (rows["rank_best"] + "–" + rows["rank_worst"]).fillna("-")
    return rows


def picked(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the rows in which each name is a dataset, method or metric, and each ``axis=value`` fits."""
    for name in names:
        axis, _, value = name.rpartition("=")
        columns = [axis] if axis else ["dataset", "method", "metric"]
        rows = rows[rows[columns].isin(value.split("|")).any(axis=1)]
    if rows.empty:
        raise ValueError(f"no row is {', '.join(names)}")
    return rows


def cell(rows: pd.DataFrame, digits: int) -> str:
    """Write the numbers of a place; that of a second metric stands in parentheses."""
    texts = []
    for row in rows[["mean", "std", "n_seeds", "status", "reason", "values"]].to_dict("records"):
        short = 0 if abs(row["mean"]) >= 10 else digits
        if row["status"] in ("finished", "incomplete"):
            texts.append(
                f"{row['mean']:.{short}f}" + (f" ± {row['std']:.{short}f}" if row["n_seeds"] > 1 else "")
            )
        elif row["status"] == "not reached" and "inf" not in row["values"]:  # a slope over it
            texts.append("-")
        elif row["status"] in ("diverged", "not reached"):
            numbers = values_of_seeds(row["values"], digits)
            texts.append(f"{count_of(row['reason'])}{row['status']}; {numbers}".rstrip("; "))
        else:
            texts.append(row["status"])
    return " ".join([*texts[:1], *(f"({text})" for text in texts[1:])]) or "-"


def count_of(reason: str) -> str:
    """Return how many of several seeds a reason speaks of, as ``1 of 3 ``; nothing where there is one seed."""
    count, seeds, _ = reason.partition(" seeds")
    return f"{count} " if seeds else ""


def values_of_seeds(values: str, digits: int) -> str:
    """Write the values of the seeds that have a finite one."""
    numbers = (float(pair.partition(":")[2]) for pair in values.split())
    return ", ".join(f"{x:.{0 if abs(x) >= 10 else digits}f}" for x in numbers if math.isfinite(x))


def written(
    of: str, rows: list[str], columns: list[str] = [], where: list[str] = [], names: dict[str, str] = {},  # noqa: B006
    beside: dict[str, str] = {}, head: str = "", digits: int = 3,  # noqa: B006
) -> str:  # fmt: skip
    """Write a table.

    Args:
        of: as for :func:`shipped`.
        rows: axes, or ``metric``.
        columns: likewise.
        where: what picks rows of the frame, as in brackets.
        names: what to call values.
        beside: columns of the frame beside each number, with their heads.
        head: of the only column.
        digits: after the point; none for numbers of 10 and more.
    """
    frame = picked(shipped(of), where).assign(only=head)
    study = studied(of.partition("/")[0]).study
    settings = study.settings
    columns = columns or ["only"]
    across = list(dict.fromkeys(frame[columns].itertuples(index=False, name=None)))
    line = [settings[axis].label if axis in settings else axis for axis in rows]
    for place in across:
        parts = zip(columns, place, strict=True)
        line.append(
            ", ".join(
                names.get(value, value)
                if axis not in settings
                else f"{value} over {axis_name(study, axis)}"
                if value == SLOPE
                else f"{axis_name(study, axis)} = {value}"
                for axis, value in parts
            )
        )
        line += beside.values()
    lines = [line, ["---"] * len(line)]
    for place, of_row in frame.groupby(rows, sort=False):
        line = [names.get(value, value) for value in map(str, place)]
        for values in across:
            of_cell = of_row[(of_row[columns] == list(values)).all(axis=1)]
            line.append(cell(of_cell, digits))
            for column in beside:
                text = str(of_cell[column].iloc[0]) if len(of_cell) else ""
                line.append((values_of_seeds(text, digits) if column == "values" else text) or "-")
        lines.append(line)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@cache
def claims_of(of: str) -> claims.ClaimTable:
    """Return what shipped numbers say of the claims of ``paper@scale``."""
    paper, _, scale = of.partition("@")
    with elsewhere():
        return claims.claim_table(studied(paper).at(Config(scale=scale)))


def judged(of: str) -> str:
    """Write what shipped numbers say of the claims of ``paper@scale``, those without numbers left out.

    The deciding comparison is that of this scale.
    """
    scale, table = of.partition("@")[2], claims_of(of)
    lines = table.markdown().splitlines()
    cells = [re.split(r"(?<!\\) \| ", f" {line[1:-1]} ") for line in lines if line.startswith("|")]
    shown = [cells[0].index(head) for head in ("Claim", "Published", scale, "Deciding comparison")]
    for line, finding in zip(cells[2:], table.findings, strict=True):
        at = next(at for at in finding.scales if at.scale == scale)
        (line[shown[3]],) = cells_of([claims.effect_text(finding, table.paper, at)])
    kept = [line for line in cells if line[shown[2]] != "not run"]
    return "".join(f"| {' | '.join(line[at] for at in shown)} |\n" for line in kept)


def glance(papers: list[str]) -> str:
    """Write how many printed results of each paper were measured, at its scale or a shorter one, and what else was."""
    counted = (
        "published results", "measured at full length", "of these with one seed", "only shorter", "not run",
        "others measured",
    )  # fmt: skip
    head = ["paper", "", *counted]
    lines = [head, ["---"] * len(head)]
    for key in papers:
        study = studied(key).study
        tables = {name: table for name, table in study.tables.items() if table.kind == "results"}
        firsts, printed = _printed(key, tables)
        held, others, single = {"paper": set[str](), "reduced": set[str]()}, set[str](), set[str]()
        for scale, name in itertools.product(held, tables):
            if (ROOT / f"reproduced/{scale}/{key}.csv").exists():
                rows = shipped(f"{key}/{name}@{scale}")
                place = [*rows.loc[:, "dataset":"metric"]]
                places = pd.Series(
                    [*map(str, rows[place].itertuples(index=False))], index=rows.index, dtype=str
                )
                known = (rows["published_mean"] != "") & (name in firsts)
                held[scale] |= {*places[known]}
                others |= {*places[~known]}
                single |= {*places[known & (rows["n_seeds"] == 1)]} if scale == "paper" else set()
        measured = held["paper"] | held["reduced"]
        only, left = len(measured - held["paper"]), printed - len(measured)
        numbers = printed, len(held["paper"]), len(single), only, left, len(others - measured)
        said = f"[`{key}`](docs/reference/results/{key}.md)", study.title
        lines.append([*said, *map(str, numbers)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _printed(key: str, tables: Mapping[str, TableSpec]) -> tuple[list[str], int]:
    """Return the first of our ``tables`` that shows each table of a paper, and how many results these print."""
    firsts, count, seen = list[str](), 0, set[str]()
    for name, table in tables.items():
        rows = pd.read_csv(ROOT / "published" / key / table.published) if table.published else pd.DataFrame()
        if len(rows) and not seen.intersection(numbered := {*map(str, rows["table"])}):
            seen |= numbered
            firsts.append(name)
            count += int(rows["mean"].notna().sum())
    return firsts, count


def tuned_equally() -> list[str]:
    """Return the methods of the arena, without its controls."""
    study = studied("arena").study
    board = study.tables["leaderboard"].board
    assert board is not None
    return sorted({entry.algorithm for name, entry in study.methods.items() if name not in board.controls})


def contents() -> str:
    """Write which methods, networks and datasets there are, with links to the pages about them."""
    with elsewhere():
        equal, known = tuned_equally(), {"networks": registry.names(models), "datasets": datasets.names()}
        further = [name for name in registry.names(algorithms) if name not in [*equal, CONTROL]]
    methods = (
        f"{len(equal)} in the arena, tuned equally: {', '.join(equal)}; "
        f"{len(further)} further: {', '.join(further)}; and the control {CONTROL}"
    )
    rows = [("methods", len(equal) + len(further), methods)]
    rows += [(kind, len(names), ", ".join(names)) for kind, names in known.items()]
    lines = [f"| [{count} {kind}](docs/reference/{kind}.md) | {names} |\n" for kind, count, names in rows]
    return "".join(["| | names |\n| --- | --- |\n", *lines])


def printed(command: str, lines: dict[str, int]) -> str:
    """Write what ``fedbench`` prints where nothing was trained, cut to so many lines from each that begins so."""
    with elsewhere():
        text = CliRunner().invoke(app, command.split(), catch_exceptions=False).stdout.splitlines()
    kept, end = list[str](), 0
    for beginning, count in lines.items():
        start = next(at for at in range(end, len(text)) if text[at].startswith(beginning))
        kept += ["..."] * (0 < end < start) + text[start : start + count]
        end = start + count
    return "\n".join(["```", *kept, *["..."] * (end < len(text)), "```\n"])


WRITERS = {"table": written, "claims": judged, "glance": glance, "contents": contents, "printed": printed}


def written_block(entry: dict[str, Any]) -> str:
    """Write the table or sample of an entry of ``docs/numbers.yaml``."""
    (kind,) = WRITERS.keys() & entry
    return WRITERS[kind](**entry[kind])  # type: ignore[operator]
