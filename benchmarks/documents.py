"""Compares the numbers of the documentation with those that are shipped: ``make numbers``.

A table between ``<!-- table: {...} -->`` and ``<!-- end -->`` is written anew (``docs_tables.py``), one of claims or of
what was reproduced (``glance``) and what a command prints (``printed``) likewise. Every number in other text that is
no fact of its section's tables (``counts.py``) has its source in a comment below the paragraph or the item, in their
order, with semicolons between them::

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
from collections.abc import Iterator
from functools import cache
from typing import Any

import counts
import numpy as np
import pandas as pd
import yaml
from docs_tables import ROOT, TABLE, claims_of, picked, rewritten, shipped

from fedbench.plan.configuration import read_yaml

PAPERS = [path.name for path in sorted((ROOT / "docs/papers").glob("*.md"))]
RESULTS = [
    "README.md",
    "docs/claims.md",
    "docs/results.md",
    "docs/arena.md",
    *(f"docs/results/{name}" for name in PAPERS),
]
CHOICES = [f"docs/papers/{name}" for name in PAPERS]
"""Pages whose tables hold what was decided: settings, no results."""
SAMPLES = ["docs/hospitals.md"]
"""Pages of which what commands print is written."""
NUMBER = re.compile(r"(?<![\w.,/-])[-+]?\d*\.\d+(?![\w.]*\d)")
"""With a point."""
PART = re.compile(r"(.+?)(?:\n[ \t]*\n|\Z|<!-- numbers: (.*?) -->)", flags=re.S)
ABOUT = re.compile(r"^<!-- about: (.*?) -->$", flags=re.M)
"""The tables of sections without one, on a page: by default all of the page."""
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|^#.*?$", flags=re.M | re.S)
"""Code, targets of links, headings."""
TABLE_ROW = re.compile(r"^\| .*$", flags=re.M)
NEWLINE = "\n"


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
    value: Any = read_yaml(ROOT / of)
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
    code = re.sub(r"\[(.*?)\]", lambda match: f"look({' '.join(match[1].split())!r})", source)
    code = re.sub(r"\{(.*?): (.*?)\}", r"constant('\1', '\2')", code)
    return float(np.squeeze(eval(code, {"__builtins__": {}}, known)))


def faults(page: str, text: str) -> list[str]:
    """Name each number of a page that is not as it is shipped: file, line, what is said, what is shipped."""
    wrong = [*_in_tables(text), *_in_prose(TABLE_ROW.sub(blank, written_by_hand(text)), text)]
    if page not in CHOICES:
        wrong += [
            (row.start(), f"{number[0]} stands in a table that is not written from what is shipped")
            for row in TABLE_ROW.finditer(written_by_hand(text))
            for number in NUMBER.finditer(row[0])
        ]
    return [f"{page}:{text.count(NEWLINE, 0, at) + 1}: {words}" for at, words in sorted(wrong)]


def written_by_hand(text: str) -> str:
    """Return a page without its code and the tables that are written from numbers; places stay."""
    for pattern in (TABLE, ABOUT, CODE):
        text = pattern.sub(blank, text)
    return text


def blank(match: re.Match[str]) -> str:
    """Return spaces, as many as there were characters; lines stay."""
    return re.sub(r"[^\n]", " ", match[0])


def _in_tables(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a written table that is another one today, and where it is."""
    for table in TABLE.finditer(text):
        said, wanted = table[0].splitlines(), rewritten(table[0]).splitlines()
        for number, (old, new) in enumerate(itertools.zip_longest(said, wanted)):
            if old != new:
                yield table.start() + len(NEWLINE.join(said[:number])) + 1, f"says `{old}`, shipped `{new}`"


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


if __name__ == "__main__":
    wrong = []
    for name in [*RESULTS, *CHOICES, *SAMPLES]:
        page = rewritten((ROOT / name).read_text(encoding="utf-8"))
        (ROOT / name).write_text(page, encoding="utf-8")
        wrong += faults(name, page) if name not in SAMPLES else []
    sys.exit("\n".join(wrong) or None)
