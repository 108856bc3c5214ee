"""The words around a table: a caption that says what was run, and notes that state every rule it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Paper, Scale, TableSpec
from fedbench.report.numbers import collect, described
from fedbench.report.numbers.compare import Compared
from fedbench.report.numbers.names import SHIPPED, phrase
from fedbench.report.tables import notes_cells as of_cells
from fedbench.report.tables import notes_rules as of_rules

LONGEST_LENGTH = 60
"""Characters that a caption spends on the lengths of trainings; the notes say them all."""


def caption(
    spec: TableSpec,
    scale: Scale,
    compared: Sequence[Compared],
    cells: Sequence[Cell],
    given: Mapping[str, Any],
) -> str:
    """Say what the table shows, at which scale, over how many seeds, how long they trained; the scales of others."""
    here = [item for item in compared if item.here and not item.measured.shipped]
    seeds = sorted({item.measured.n_wanted for item in here})
    count = " or ".join(str(n) for n in seeds)
    run = f"{count} seed{'s' * (seeds != [1])}" if seeds else "nothing run"
    long = described.lengths(cells)
    run = "; ".join(filter(None, [run, long if len(long) <= LONGEST_LENGTH else ""]))
    others = sorted({item.measured.scale for item in compared if item.measured.shipped} - {scale.name})
    words = [
        phrase(spec.title),
        phrase(spec.caption),
        f"Scale: {scale.name} ({run})" + f"; {SHIPPED}: {', '.join(others)}" * bool(others),
        described.changed(given),
    ]
    return ". ".join(word for word in words if word) + "."


@dataclass(frozen=True)
class Shown:
    """What a table shows: all that the words around it depend on.

    Attributes:
        paper: whose table it is.
        scale: at which scale.
        spec: the table, as configured.
        cells: whose results it shows.
        compared: its numbers.
        tolerance: up to which a difference is a match.
        decimals: digits that are compared.
        unknown_names: what the published file names and nothing here is called.
        tasks: which class is positive, its share, dropped samples.
        untuned: methods with numbers, by dataset, whose hyper-parameters no trial chose there.
        facts: what was trained on what: lengths, tuned hyper-parameters.
        dashes: whether a place without a number is shown.
        mixed_data: datasets that were prepared in several versions.
        other_data: datasets that have been prepared anew since their runs were trained.
        stamp: what ties the numbers to code and configuration.
    """

    paper: Paper
    scale: Scale
    spec: TableSpec
    cells: Sequence[Cell]
    compared: Sequence[Compared]
    tolerance: float
    decimals: int
    unknown_names: Sequence[str]
    tasks: Sequence[str]
    untuned: str
    facts: Sequence[str]
    dashes: bool
    mixed_data: Sequence[str]
    other_data: Sequence[str]
    stamp: str


def notes(shown: Shown) -> tuple[list[str], list[str]]:
    """Return the notes that may stand below a table, the most important first, and those for the end of its document.

    Below: what the numbers and signs are, data that do not compare, the outcome, which class is positive, what went
    wrong, doubtful print. At the end: the rule in full, how numbers are made, what was trained.
    """
    paper, compared = shown.paper, shown.compared
    prepared = "made from data that were prepared differently, so that these numbers cannot be compared"
    comparable = any(item.verdict.difference is not None for item in compared)
    below = [
        of_rules.legend(paper, shown.spec, compared, shown.tolerance, shown.dashes),
        *of_cells.listed(prepared, shown.mixed_data),
        *of_rules.other_data(shown.other_data),
        *of_cells.absent(compared),
        *of_cells.trouble(paper, compared, collect.FAILED),
        *of_rules.untuned(shown.untuned),
        of_cells.score(paper, compared) if comparable else of_cells.bounds(compared),
        *shown.tasks,
        *of_cells.additions(paper, compared),
        *of_cells.trouble(paper, compared, collect.DIVERGED, collect.UNDEFINED, collect.INCOMPLETE),
        *of_cells.idle_runs(paper, compared),
        *of_cells.moving(compared),
        *of_cells.doubts(paper, compared),
        *of_cells.listed("published, but no name of this study", shown.unknown_names),
    ]
    end = [
        *([of_rules.printed(compared), of_rules.verdicts(compared, shown.tolerance)] if comparable else []),
        of_cells.resembling(compared, shown.tolerance),
        of_rules.bold(shown.spec, compared, shown.decimals),
        *(of_rules.devices(compared) if comparable else []),
        of_rules.combined(paper, shown.spec),
        of_rules.selection(paper, shown.cells),
        *shown.facts,
        *of_cells.origin(compared),
        *of_cells.moved(paper, compared),
        f"{shown.stamp}.",
    ]
    return [*filter(None, below)], [*filter(None, end)]
