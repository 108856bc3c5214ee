"""How metrics and settings are called, and how numbers are put for a reader."""

from __future__ import annotations

from collections.abc import Mapping

from fedbench.study.entries import Entry
from fedbench.study.references import GAINS, TRAINING
from fedbench.study.schema import Paper, Value

ABSENT = "–"
DECIMALS = 3
"""Digits of a number that no table shows beside print."""
SHIPPED = "‡"
"""Marks a number that came with the repository and was not trained here."""
AVERAGE = "AVG"
"""What an axis calls the average over its values."""
SLOPE = "slope"
"""What an axis calls the slope along its values."""
MADE_OF = (AVERAGE, SLOPE, *GAINS)
"""Values of an axis that are made of its others."""
GREEK = {"rho": "ρ", "alpha": "α", "delta": "δ", "beta": "β", "gamma": "γ", "mu": "μ"}


def phrase(text: str) -> str:
    """Put a title or caption on one line, whatever line breaks its YAML has, without its full stop."""
    return " ".join(text.split()).rstrip(".")


def capital(text: str) -> str:
    """Begin a sentence with a capital letter."""
    return text[0].upper() + text[1:]


def target_name(name: str) -> str:
    """Return a table's or figure's name as a reader writes it: ``tableA1`` is "Table A1"."""
    for kind in ("table", "figure"):
        if name.startswith(kind):
            return f"{kind.capitalize()} {name.removeprefix(kind)}".strip()
    return name


def axis_name(paper: Paper, axis: str) -> str:
    """Name an axis: a setting with a letter for a name by that letter, any other by its label."""
    if axis not in paper.settings:
        return axis.capitalize()
    return GREEK.get(axis) or (axis if len(axis) == 1 else paper.settings[axis].label)


def axis_text(paper: Paper, axis: str, value: Value) -> str:
    """Name one value of an axis: datasets, methods and metrics by their label, settings as "p = 4"."""
    if value in MADE_OF or axis == TRAINING:
        return str(value)
    if axis in ("dataset", "method"):
        known: Mapping[str, Entry] = paper.datasets if axis == "dataset" else paper.methods
        return known[str(value)].label or str(value)
    if axis == "metric":
        return paper.measure(str(value)).label
    return f"{axis_name(paper, axis)} = {value_text(value)}"


def value_text(value: Value) -> str:
    """Write a setting's value as YAML does."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text.lower() if isinstance(value, bool) else text


def signed(value: float, decimals: int) -> str:
    """Format a difference with its sign (a real minus); what rounds to nothing has none."""
    text = f"{abs(value):.{decimals}f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text
