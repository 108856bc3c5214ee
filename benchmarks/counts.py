"""Numbers in sentences of the documentation, and which of them the configuration and the shipped runs confirm.

An integer (``4,000 iterations``, ``five seeds``, ``p = 8``, ``10 %``) needs no source if it is a fact of the tables of
its section: a value of a setting beside the setting's name, or what the study's YAML, its scale or its tuning says of
the word that follows (iterations, rounds, clients, seeds, trials ...). All other numbers have one (``documents.py``).
Numbers of tables, figures, equations and seeds are names, and so are years and "90 % interval".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.plan.configuration import read_yaml
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.specs import TrainSpec

ROOT = Path(__file__).parents[1]
WORDS = [
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
]
UNITS = (
    "cell|run|number|place|seed|iteration|round|cycle|epoch|step|client|group|trial|episode|sample|budget|hospital|"
    "method|class|digit|match|dataset|positive"
)
NAMES = re.compile(
    r"\b(?:tables?|figures?|algorithms?|appendix|remark|eq\.|equations?|sections?|seeds)\s"
    r"\(?\d+(?:(?:,\s|\sto\s|\sand\s)\d+)*|\b(?:19|20)\d\d\b(?=[),*\]]|\sdo\))|\b\d+ [A-Z]\w+ 20\d\d|\b90 % interval",
    flags=re.I,
)
"""Numbers of things, and years."""
NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?\d*\.\d+(?![\w.]*\d)|(?<![\w.,/^-])(?:\d{1,3}(?:,\d{3})+|\d+)(?![\w/]|[.,]\d)"
    rf"|\b(?:one(?=\sseed)|{'|'.join(WORDS[1:])})\b(?=\s(?:[\w-]+\s){{0,2}}?(?:{UNITS})(?:e?s)?\b)",
    flags=re.I,
)
BEFORE = re.compile(r"([A-Za-z_]+)(?:\s([A-Za-z]+|=))?\s(?:\W*[\d.]+(?:,\s|\sand\s|\sto\s|\sor\s))*$")
"""The one or two words before a number or a list of them: ``p =``, ``window of``, ``At``."""
AFTER = re.compile(r"(?:(?:\s|\sto\s|\sor\s|\sand\s|,\s)\d[\d,.]*)*" + 3 * r"(?:\s([A-Za-z-]+))?")
Facts = dict[str, set[float]]


def value_of(text: str) -> float:
    """Return the number that digits or a word say."""
    word = text.lower()
    return WORDS.index(word) + 1 if word in WORDS else float(text.replace(",", ""))


def numbers(prose: str) -> Iterator[re.Match[str]]:
    """Yield each number that is not a name."""
    names = [number.span() for number in NAMES.finditer(prose)]
    for number in NUMBER.finditer(prose):
        if not any(start <= number.start() < end for start, end in names):
            yield number


def known(number: re.Match[str], prose: str, facts: Facts) -> bool:
    """Say whether an integer is a fact of the tables beside it."""
    if "." in number[0]:
        return False
    value, after = value_of(number[0]), prose[number.end() :]
    if re.match(r"(?: or \d+)?\s%", after):
        return value / 100 in facts["%"]
    before = None if number[0].isalpha() else BEFORE.search(prose[: number.start()])
    sides = before, AFTER.match(after)
    words = [word.lower() for side in sides if side for word in side.groups() if word]
    return any(
        value in facts[name]
        for word in words
        for name in (word, word.removesuffix("s"), word.removesuffix("es"))
    )


@cache
def studied(paper: str) -> Plan:
    """Return a plan of a study, whose YAML is read once; its ``at`` has those at each scale."""
    return Plan(Config(), paper)


def facts_of(frames: dict[str, pd.DataFrame]) -> Facts:
    """Return what some tables are made with, by the word that follows or the setting.

    Args:
        frames: what is shipped of each ``paper/table@scale``.
    """
    facts: Facts = defaultdict(set)
    for of, frame in frames.items():
        place, _, scale = of.partition("@")
        paper, _, table = place.partition("/")
        _add_rows(facts, frame, paper)
        datasets = list(frame["dataset"].unique())
        for file in (ROOT / "config/tuned" / paper).rglob("*.yaml"):
            if file.stem.partition("_")[0] in datasets:
                _add_trials(facts, read_yaml(file)["protocol"])
        for at in {scale, "paper"}:
            for train, clients in lengths(paper, table, at, tuple(datasets)):
                facts["client"] |= {clients, train.participation.clients}
                _add_length(facts, train.model_dump())
                facts["round"].add(train.known_rounds)
                cycle = (train.period or 1) * (train.participation.groups or 1)
                facts["cycle"] |= {length / cycle for length in facts["iteration"] if length}
    return facts


@cache
def lengths(paper: str, table: str, scale: str, datasets: tuple[str, ...]) -> list[tuple[TrainSpec, int]]:
    """List how the cells of a table train, and on how many clients."""
    plan = studied(paper).at(Config(scale=scale, datasets=[*datasets]))
    return [(cell.runs[0].train, cell.runs[0].data.clients) for cell in plan.cells(table)]


def _add_rows(facts: Facts, frame: pd.DataFrame, paper: str) -> None:
    facts["seed"] |= {*frame["n_wanted"]}
    facts["method"].add(frame["method"].nunique())
    for axis, setting in studied(paper).study.settings.items():
        if axis in frame:
            values = {*pd.to_numeric(frame[axis], errors="coerce").dropna()}
            for name in ("%", axis, *re.findall(r"\w{3,}", setting.label), *ALIASES.get(axis, [])):
                facts[name.lower()] |= values


ALIASES = {"I": ["window", "windows", "at"], "p": ["period"], "n_minority": ["minority"]}


def _add_length(facts: Facts, train: dict[str, Any]) -> None:
    for key in ("iterations", "rounds", "cycles", "epochs", "evaluations"):
        facts[key.removesuffix("s")].add(train.get(key))
    groups = (train.get("participation") or {}).get("groups")
    facts["group"].add(groups)


def _add_trials(facts: Facts, protocol: dict[str, Any]) -> None:
    stable = protocol.get("stable") or {}
    facts["trial"].add(protocol["trials"])
    facts["seed"].add(len(protocol["seeds"]))
    facts["run"].add(len(stable.get("seeds", [])))
    for part in (protocol, stable):
        _add_length(facts, part.get("train") or {})
