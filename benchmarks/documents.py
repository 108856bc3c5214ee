"""Holds the numbers of the documentation against those that are shipped: ``make numbers``.

A table between ``<!-- table: {...} -->`` and ``<!-- end -->`` is written anew, one of claims or of what was reproduced
(``glance``) likewise. Every number
in other text that is no fact of its section's tables (``counts.py``) has its source in a comment below the paragraph or
the item, in their order, with semicolons between them::

    From 20 % to 1 % LocalSCGDAM loses 0.019.
    <!-- numbers: [LocalSCGDAM, imratio=0.2] - [LocalSCGDAM, imratio=0.01] -->

Brackets hold what picks rows of the last table above, or of ``[paper/table@scale: ...]``: names and ``axis=value``,
alternatives with ``|``. They are the rows' means, with ``seed=0`` the values of a seed, with ``of=std`` those of
another column. ``{file.yaml: a/b}`` is a constant of the configuration, or the length of a list there;
``{climb@reduced: 2.won}`` counts places of the second claim (``printed``, ``in_print``, ``total``, ``ran``, ``won``,
``lost``, ``open``). A number that stands in no file of ours (a threshold, a printed one) is its own source.
"""

from __future__ import annotations

import itertools
import re
import sys
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import counts
import numpy as np
import pandas as pd
import yaml

from fedbench.plan.configuration import load_paper
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.tables import build, claims
from fedbench.report.tables.document import Table

ROOT = Path(__file__).parents[1]
PAPERS = [path.name for path in sorted((ROOT / "docs/papers").glob("*.md"))]
RESULTS = [
    "README.md",
    "docs/index.md",
    "docs/results.md",
    "docs/arena.md",
    *(f"docs/results/{name}" for name in PAPERS),
]
CHOICES = [f"docs/papers/{name}" for name in PAPERS]
"""Pages whose tables hold what was decided: settings, no results."""
TABLE = re.compile(r"^<!-- (table|claims|glance): (.*?) -->\n(.*?)^<!-- end -->$", flags=re.M | re.S)
NUMBER = re.compile(r"(?<![\w.,/-])[-+]?\d*\.\d+(?![\w.]*\d)")
"""With a point."""
PART = re.compile(r"(.+?)(?:\n[ \t]*\n|\Z|<!-- numbers: (.*?) -->)", flags=re.S)
ABOUT = re.compile(r"^<!-- about: (.*?) -->$", flags=re.M)
"""The tables of sections without one, on a page: by default all of the page."""
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|^#.*?$", flags=re.M | re.S)
"""Code, targets of links, headings."""
TABLE_ROW = re.compile(r"^\| .*$", flags=re.M)
NEWLINE = "\n"
WORDS = {"not reached": "never"}


@contextmanager
def elsewhere() -> Iterator[None]:
    """Work in a folder with configuration, print and shipped numbers, but nothing that was trained here."""
    with TemporaryDirectory() as folder:
        for part in ("config", "tables", "reproduced"):
            (Path(folder) / part).symlink_to(ROOT / part)
        with chdir(folder):
            yield


@cache
def made(of: str) -> Table:
    """Return the table ``paper/table@scale`` on all datasets of its study, from shipped numbers alone."""
    place, _, scale = of.partition("@")
    paper, _, table = place.partition("/")
    with elsewhere():
        return build.make(Plan(Config(scale=scale, datasets=[*load_paper(paper).datasets]), paper), table)


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


def looked_up(rows: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Return the numbers that a bracket stands for."""
    special = dict(name.split("=") for name in names if name.startswith(("seed=", "of=")))
    rows = picked(rows, [name for name in names if name.partition("=")[0] not in special])
    if "seed" in special:
        seeds = (dict(pair.split(":") for pair in values.split()) for values in rows["values"])
        return np.array([float(values[special["seed"]]) for values in seeds])
    return rows[special.get("of", "mean")].astype(float).to_numpy()


def constant(of: str, place: str) -> float:
    """Return a number of a YAML file, the length of a list or mapping in it, or a count of places of a claim."""
    if "@" in of:
        number, _, what = place.partition(".")
        return float(places_of(claims_of(of).findings[int(number) - 1], of.partition("@")[2])[what])
    value: Any = yaml.safe_load((ROOT / of).read_text(encoding="utf-8"))
    for name in place.split("/"):
        value = value[int(name)] if isinstance(value, list) else {str(key): value[key] for key in value}[name]
    return float(len(value) if isinstance(value, (list, dict)) else value)


def places_of(finding: Any, scale: str) -> dict[str, int]:
    """Count the places of a claim: in print, and measured at a scale by their outcome."""
    (at,) = [at for at in finding.scales if at.scale == scale]
    outcomes = list(at.verdict.outcomes)
    counts = {word: outcomes.count(word) for word in ("won", "lost", "open")}
    printed = {"printed": finding.printed.won, "in_print": finding.printed.places}
    return counts | printed | {"total": at.total, "ran": len(outcomes)}


@cache
def result(source: str, above: str) -> float:
    """Compute the source of a number: arithmetic over brackets."""

    def look(text: str) -> np.ndarray:
        of, _, names = text.rpartition(": ")
        return looked_up(shipped(of or above), [name.strip() for name in names.split(",")])

    def of_all(what: Any) -> Any:
        return lambda *parts: what(np.hstack(parts))

    known = {
        "look": look,
        "constant": constant,
        "min": of_all(np.min),
        "max": of_all(np.max),
        "mean": of_all(np.mean),
        "abs": np.abs,
    }
    source = re.sub(r"(?<=\d),(?=\d{3})", "", source)
    code = re.sub(r"\[(.*?)\]", lambda found: f"look({' '.join(found[1].split())!r})", source)
    code = re.sub(r"\{(.*?): (.*?)\}", r"constant('\1', '\2')", code)
    return float(np.squeeze(eval(code, {"__builtins__": {}}, known)))


def faults(page: str, text: str) -> list[str]:
    """Name each number of a page that is not as it is shipped: file, line, what is said, what is shipped."""
    found = [*_in_tables(text), *_in_prose(TABLE_ROW.sub(blank, written_by_hand(text)), text)]
    if page not in CHOICES:
        found += [
            (row.start(), f"{number[0]} stands in a table that is not written from what is shipped")
            for row in TABLE_ROW.finditer(written_by_hand(text))
            for number in NUMBER.finditer(row[0])
        ]
    return [f"{page}:{text.count(NEWLINE, 0, at) + 1}: {words}" for at, words in sorted(found)]


def written_by_hand(text: str) -> str:
    """Return a page without its code and the tables that are written from numbers; places stay."""
    for pattern in (TABLE, ABOUT, CODE):
        text = pattern.sub(blank, text)
    return text


def blank(found: re.Match[str]) -> str:
    """Return spaces, as many as there were characters; lines stay."""
    return re.sub(r"[^\n]", " ", found[0])


def _in_tables(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a written table that is another one today, and where it is."""
    for found in TABLE.finditer(text):
        said, wanted = found[0].splitlines(), rewritten(found[0]).splitlines()
        for number, (old, new) in enumerate(itertools.zip_longest(said, wanted)):
            if old != new:
                yield found.start() + len(NEWLINE.join(said[:number])) + 1, f"says `{old}`, shipped `{new}`"


def _in_prose(prose: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield each number without a source, or with another value than its source, and where it is."""
    tables = [
        (found.start(), yaml.safe_load(found[2])["of"])
        for found in TABLE.finditer(text)
        if found[1] == "table"
    ]
    about = ABOUT.findall(text) or [of for _, of in tables]
    heads = [found.start() for found in re.finditer(r"^## ", text, flags=re.M)]
    for part in PART.finditer(prose):
        section = bisect(heads, part.start())
        beside = [of for at, of in tables if bisect(heads, at) == section] or about
        said = [one for one in counts.numbers(part[1]) if not counts.known(one, part[1], facts(*beside))]
        sources = [" ".join(one.split()) for one in (part[2] or "").split(";")]
        above = next((of for at, of in reversed(tables) if at < part.start()), "")
        for number, source in zip(said, [*sources, *[""] * len(said)], strict=False):
            if fault := _fault(number[0], source, above):
                yield part.start() + number.start(), fault
        if part[2] and len(sources) > len(said):
            yield part.start(2), f"more sources than numbers: {'; '.join(sources[len(said) :])}"


def _fault(said: str, source: str, above: str) -> str:
    """Say what is wrong with a number and its source; nothing if they agree."""
    try:
        value = result(source, above)
    except Exception as error:
        return f"{said} has no source: {source} ({error})"
    digits = len(said.partition(".")[2])
    if abs(value - counts.value_of(said)) > 0.5 * 10**-digits + 1e-9:
        return f"says {said}, shipped {value:.{digits + 1}f}: {source}"
    return ""


@cache
def facts(*tables: str) -> counts.Facts:
    """Return what the tables of a section are made with."""
    return counts.facts_of({one: shipped(one) for of in tables for one in of.split("+")})


def cell(rows: pd.DataFrame, digits: int) -> str:
    """Write the numbers of a place; that of a second metric stands in parentheses."""
    texts = []
    for row in rows.to_dict("records"):
        short = 0 if abs(row["mean"]) >= 10 else digits
        if row["status"] in ("finished", "incomplete"):
            texts.append(
                f"{row['mean']:.{short}f}" + (f" ± {row['std']:.{short}f}" if row["n_seeds"] > 1 else "")
            )
        elif row["status"] == "diverged":
            texts.append(f"{count_of(row['reason'])}diverged; {each(row['values'], digits)}".rstrip("; "))
        else:
            texts.append(WORDS.get(row["status"], row["status"]))
    return " ".join([*texts[:1], *(f"({text})" for text in texts[1:])]) or "-"


def count_of(reason: str) -> str:
    """Return how many of several seeds a reason speaks of, as ``1 of 3 ``; nothing where there is one seed."""
    count, seeds, _ = reason.partition(" seeds")
    return f"{count} " if seeds else ""


def each(values: str, digits: int) -> str:
    """Write the values of the seeds."""
    return ", ".join(f"{float(pair.partition(':')[2]):.{digits}f}" for pair in values.split())


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
    settings = load_paper(of.partition("/")[0]).settings
    columns = columns or ["only"]
    across = list(dict.fromkeys(frame[columns].itertuples(index=False, name=None)))
    line = [settings[axis].label if axis in settings else axis for axis in rows]
    for place in across:
        parts = zip(columns, place, strict=True)
        line.append(
            ", ".join(
                f"{axis} = {value}" if axis in settings else names.get(value, value) for axis, value in parts
            )
        )
        line += beside.values()
    lines = [line, ["---"] * len(line)]
    for place, found in frame.groupby(rows, sort=False):
        line = [names.get(value, value) for value in map(str, place)]
        for one in across:
            here = found[(found[columns] == list(one)).all(axis=1)]
            line.append(cell(here, digits))
            for column in beside:
                text = str(here[column].iloc[0]) if len(here) else ""
                line.append((each(text, digits) if column == "values" else text) or "-")
        lines.append(line)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@cache
def claims_of(of: str) -> claims.ClaimTable:
    """Return what shipped numbers say of the claims of ``paper@scale``."""
    paper, _, scale = of.partition("@")
    with elsewhere():
        return claims.make(Plan(Config(scale=scale), paper))


def judged(of: str) -> str:
    """Write what shipped numbers say of the claims of ``paper@scale``, those without numbers left out."""
    scale = of.partition("@")[2]
    lines = claims_of(of).markdown().splitlines()
    cells = [re.split(r"(?<!\\) \| ", f" {line[1:-1]} ") for line in lines if line.startswith("|")]
    shown = [cells[0].index(head) for head in ("Claim", "In print", scale, "Decides")]
    kept = [line for line in cells if line[shown[2]] != "not run"]
    return "".join(f"| {' | '.join(line[at] for at in shown)} |\n" for line in kept)


def glance(papers: list[str]) -> str:
    """Write how many printed results of each paper were measured, at its scale or a shorter one, and what else was."""
    head = [
        "paper",
        "printed results",
        "measured at scale paper",
        "only at reduced",
        "not run",
        "others measured",
    ]
    lines = [head, ["---"] * len(head)]
    for key in papers:
        tables = {name: table for name, table in load_paper(key).tables.items() if table.kind == "results"}
        firsts = {table.published: name for name, table in reversed(tables.items()) if table.published}
        folder = ROOT / "tables/published" / key
        printed = sum(pd.read_csv(folder / file)["mean"].count() for file in firsts)
        held, others = {"paper": set[str](), "reduced": set[str]()}, set[str]()
        for scale, name in itertools.product(held, tables):
            if (ROOT / f"reproduced/{scale}/{key}.csv").exists():
                rows = shipped(f"{key}/{name}@{scale}")
                place = rows.columns[: rows.columns.get_loc("metric") + 1]
                places = pd.Series(
                    [*map(str, rows[place].itertuples(index=False))], index=rows.index, dtype=str
                )
                known = (rows["published_mean"] != "") & (name in firsts.values())
                held[scale] |= {*places[known]}
                others |= {*places[~known]}
        only = held["reduced"] - held["paper"]
        left = printed - len(held["paper"] | only)
        lines.append([key, *map(str, (printed, len(held["paper"]), len(only), left, len(others)))])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@cache
def block(kind: str, spec: str) -> str:
    """Write a table with its markers."""
    write: Callable[..., str] = {"claims": judged, "glance": glance}.get(kind, written)
    return f"<!-- {kind}: {spec} -->\n{write(**yaml.safe_load(spec))}<!-- end -->"


def rewritten(text: str) -> str:
    """Return a page with its tables as the numbers are shipped."""
    return TABLE.sub(lambda found: block(found[1], found[2]), text)


if __name__ == "__main__":
    wrong = []
    for name in [*RESULTS, *CHOICES]:
        page = rewritten((ROOT / name).read_text(encoding="utf-8"))
        (ROOT / name).write_text(page, encoding="utf-8")
        wrong += faults(name, page)
    sys.exit("\n".join(wrong) or None)
