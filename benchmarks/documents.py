"""Holds the numbers of README.md and docs/ against the reference results: ``make numbers``.

``docs/numbers.yaml`` says which tables and samples of a page are written from what, and from what the measured
numbers of its sentences are computed. On a page with such tables every number with three decimals is listed there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import yaml
from docs_tables import ROOT, WRITERS, picked, shipped, written_block
from reference_pages import PAGES

from fedbench.study.configuration import read_yaml

Entry = dict[str, Any]
HELD: dict[str, list[Any]] = yaml.safe_load((ROOT / "docs/numbers.yaml").read_text(encoding="utf-8"))
CODE = r"^```(?P<language>\w*)\n.*?^```$\n?"
BLOCK = re.compile(rf"(?:^\|[^\n]*\n)+|{CODE}", flags=re.M | re.S)
"""A table or a block of code."""
HIDDEN = re.compile(rf"{BLOCK.pattern}|`[^`\n]*`|\]\([^)]*\)", flags=re.M | re.S)
"""What is no sentence."""
NUMBER = r"([-+−]?\d[\d,]*(?:\.\d+)?)"
MEASURED = re.compile(r"(?<![\w.])\d+\.\d{3,}(?![\w%])")


def looked_up(names: list[str], of: str) -> np.ndarray:
    """Return the numbers that a bracket stands for."""
    special = dict(name.split("=") for name in names if name.startswith(("seed=", "of=")))
    rows = picked(shipped(of), [name for name in names if name.partition("=")[0] not in special])
    if "seed" in special:
        seeds = (dict(pair.split(":") for pair in values.split()) for values in rows["values"])
        return np.array([float(values[special["seed"]]) for values in seeds])
    return rows[special.get("of", "mean")].astype(float).to_numpy()


@cache
def result(source: str, above: str) -> float:
    """Compute a source: arithmetic over brackets of a table and values of the configuration."""

    def look(text: str) -> np.ndarray:
        of, _, names = text.rpartition(": ")
        return looked_up([name.strip() for name in names.split(",")], of or above)

    def constant(file: str, place: str) -> float:
        value: Any = read_yaml(ROOT / file)
        for name in place.split("/"):
            value = value[int(name)] if isinstance(value, list) else value[name]
        return float(value)

    def of_all(what: Any) -> Any:
        return lambda *parts: what(np.hstack(parts))

    known = {"look": look, "constant": constant, "abs": np.abs}
    known |= {name: of_all(getattr(np, name)) for name in ("min", "max", "mean")}
    code = re.sub(r"\[(.*?)\]", r"look('\1')", source)
    code = re.sub(r"\{(.*?): (.*?)\}", r"constant('\1', '\2')", code)
    return float(np.squeeze(eval(code, {"__builtins__": {}}, known)))


def rewritten(text: str, entries: list[Any]) -> str:
    """Return a page with its tables and samples as they are written today.

    Raises:
        ValueError: the page has more or fewer tables than entries.
    """
    blocks = [block for block in BLOCK.finditer(text) if not block["language"]]
    kept = [entry for entry in entries if entry == "hand" or WRITERS.keys() & entry]
    if kept and len(kept) != len(blocks):
        raise ValueError(f"{len(blocks)} tables and samples, docs/numbers.yaml has {len(kept)}")
    for block, entry in reversed([*zip(blocks, kept, strict=False)]):
        if entry != "hand":
            text = text[: block.start()] + written_block(entry) + text[block.end() :]
    return text


def faults(page: str, text: str, entries: list[Any]) -> Iterator[str]:
    """Name each number of a page that is not as it is shipped: file, line, what is said, what is shipped."""
    prose = HIDDEN.sub(blank, text)
    for entry in entries:
        for words, sources in ({} if entry == "hand" else entry.get("says", {})).items():
            pattern = r"\s+".join(map(re.escape, words.split())).replace(r"\#", NUMBER)
            match = re.search(pattern, text)
            if match is None:
                yield f"{page}: nowhere says `{words}`"
                continue
            prose = prose[: match.start()] + blank(match) + prose[match.end() :]
            above = entry.get("table", {}).get("of", "")
            sources = sources if isinstance(sources, list) else [sources]
            for at, (said, source) in enumerate(zip(match.groups(), sources, strict=True), 1):
                if fault := _fault(said, str(source), above):
                    yield f"{page}:{text.count(chr(10), 0, match.start(at)) + 1}: {fault}"
    if any(entry != "hand" and "table" in entry for entry in entries):
        for number in MEASURED.finditer(prose):
            yield f"{page}:{text.count(chr(10), 0, number.start()) + 1}: {number[0]} is not in docs/numbers.yaml"


def blank(match: re.Match[str]) -> str:
    """Return spaces, as many as there were characters; lines stay."""
    return re.sub(r"[^\n]", " ", match[0])


def _fault(said: str, source: str, above: str) -> str:
    """Say what is wrong with a number and its source; nothing if they agree."""
    value, digits = result(source, above), len(said.partition(".")[2])
    if abs(value - float(said.replace(",", "").replace("−", "-"))) > 0.5 * 10**-digits + 1e-9:
        return f"says {said}, shipped {value:.{digits + 1}f}: {source}"
    return ""


if __name__ == "__main__":
    wrong = list[str]()
    for name, entries in HELD.items():
        page = rewritten((ROOT / name).read_text(encoding="utf-8"), entries)
        (ROOT / name).write_text(page, encoding="utf-8")
        wrong += faults(name, page, entries)
    for name, written in PAGES.items():
        (ROOT / name).write_text(written(), encoding="utf-8")
    sys.exit("\n".join(wrong) or None)
