"""The words around a table: a caption that says what was run, and notes that state every rule it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.plan.plan import Plan
from fedbench.plan.untuned import methods_by_dataset
from fedbench.report.numbers import compare, described
from fedbench.report.numbers.compare import Compared
from fedbench.report.numbers.names import SHIPPED
from fedbench.report.numbers.rows import DIVERGED, FAILED, INCOMPLETE, UNDEFINED
from fedbench.report.tables import notes_cells as of_cells
from fedbench.report.tables import notes_rules as of_rules

LONGEST_LENGTH = 60
"""Characters that a caption spends on the lengths of trainings; the notes say them all."""


def caption(plan: Plan, name: str, compared: Sequence[Compared]) -> str:
    """Say what the table shows, at which scale, over how many seeds, how long they trained; the scales of others."""
    seeds = sorted({item.measured.n_wanted for item in compared if item.here and not item.measured.shipped})
    count = " or ".join(str(n) for n in seeds)
    run = f"{count} seed{'s' * (seeds != [1])}" if seeds else "nothing run"
    long = described.lengths(plan.cells(name))
    run = "; ".join([run, *[long] * (0 < len(long) <= LONGEST_LENGTH)])
    others = sorted({item.measured.scale for item in compared if item.measured.shipped} - {plan.scale.name})
    return described.caption(plan, name, f" ({run})" + f"; {SHIPPED}: {', '.join(others)}" * bool(others))


def below(
    plan: Plan, name: str, compared: Sequence[Compared], made: Mapping[str, Any], dashes: bool
) -> list[str]:
    """Return the notes that may stand below a table, the most important first.

    What the numbers and signs are, data that do not compare, the outcome, which class is positive, what went wrong,
    doubtful print.

    Args:
        plan: of the study whose table it is.
        name: the table.
        compared: its numbers.
        made: the provenance of its cells.
        dashes: whether a place without a number is shown.
    """
    paper, spec, cells, data = plan.study, plan.table(name), plan.cells(name), Path(plan.config.data_dir)
    prepared = "made from data that were prepared differently, so that these numbers cannot be compared"
    comparable = any(item.verdict.difference is not None for item in compared)
    measured = {(i.place["dataset"], i.place["method"]) for i in compared if i.here and i.measured.n_seeds}
    not_tuned = [cell for cell in plan.untuned(cells) if (cell.dataset, cell.method) in measured]
    notes = [
        of_rules.legend(paper, spec, compared, plan.config.tolerance, dashes),
        *of_cells.listed(
            prepared, [dataset for dataset, digests in made["data"].items() if len(digests) > 1]
        ),
        *of_rules.other_data(described.other_data(cells, made["data"], data)),
        *of_cells.absent(compared),
        *of_cells.trouble(paper, compared, FAILED),
        *of_rules.untuned(methods_by_dataset(not_tuned)),
        of_cells.score(paper, compared) if comparable else of_cells.bounds(compared),
        *described.tasks(cells, data),
        *of_cells.additions(paper, compared),
        *of_cells.trouble(paper, compared, DIVERGED, UNDEFINED, INCOMPLETE),
        *of_cells.idle_runs(paper, compared),
        *of_cells.moving(compared),
        *of_cells.doubts(paper, compared),
        *of_cells.listed("published, but no name of this study", compare.unknown_names(paper, spec)),
    ]
    return [*filter(None, notes)]


def details(plan: Plan, name: str, compared: Sequence[Compared], decimals: int) -> list[str]:
    """Return the notes for the end of a document: the rule in full, how numbers are made, what was trained."""
    paper, spec, cells, tolerance = plan.study, plan.table(name), plan.cells(name), plan.config.tolerance
    comparable = any(item.verdict.difference is not None for item in compared)
    notes = [
        *([of_rules.printed(compared), of_rules.verdicts(compared, tolerance)] if comparable else []),
        of_cells.resembling(compared, tolerance),
        of_rules.bold(spec, compared, decimals),
        *(of_rules.devices(compared) if comparable else []),
        of_rules.combined(paper, spec),
        of_rules.selection(paper, cells),
        *described.trained(cells),
        *described.chosen(plan, cells),
        *of_cells.origin(compared),
        *of_cells.moved(paper, compared),
    ]
    return [*filter(None, notes)]
