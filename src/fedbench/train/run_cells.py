"""Trains cells one after another, says where it is, and goes on when one of them fails.

PyTorch takes seconds to import: no module that does is imported before there is something to train.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedbench.errors import LINE, DiskError, ListedError, UserError, lacks_memory, shortened
from fedbench.spec import RunSpec
from fedbench.store import cell_files, code
from fedbench.store.record import MODEL, PREDICTIONS, Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train.progress import Reporter, counts, say

if TYPE_CHECKING:
    from fedbench.train.ahead import Ahead

DIVERGED = 3
"""Exit status when a seed diverged and nothing failed: a result, but one to look at."""


def train_all(plan: Plan, chosen: Sequence[Cell], store: Store, cores: int = 1) -> int:
    """Train cells of a plan, those in the store excepted, and return the exit status: 0, or 3 if a seed diverged.

    On a processor up to ``cores`` runs are trained at a time.

    Raises:
        UserError: what the cells ask for is wrong, and nothing was trained; or cells failed: the message has the reason
            of each and the command to run it alone. A disk that takes no files, or gives none, ends the work at once:
            every other cell would fail alike.
    """
    config = plan.config
    if not all(store.has(run.key) for cell in chosen for run in cell.runs):
        _check(chosen, config)
    if not_tuned := plan.untuned_warning(chosen):
        say(not_tuned)
    if line := code.remark({cell.name: cell_files.other_code(cell, store) for cell in chosen}):
        say(line)
    diverged, failed = [], dict[str, str]()
    with contextlib.ExitStack() as stack:
        ahead = _ahead(plan, chosen, store, cores, stack)
        for number, cell in enumerate(chosen, 1):
            left = f", {len(failed)} failed" if failed else ""
            say(f"[{number}/{len(chosen)}] {cell.name}  scale {cell.scale}{left}")
            try:
                diverged += _train(cell, plan, store, ahead)
            except Exception as error:
                if len(chosen) == 1 or isinstance(error, DiskError):
                    raise
                if not isinstance(error, UserError) and not lacks_memory(error):
                    traceback.print_exc()
                failed[cell.name] = shortened(str(error) or type(error).__name__, LINE)
                say(f"  failed: {failed[cell.name]}")
    if len(chosen) > 1:
        say(counts(len(chosen), len(chosen) - len(failed), 0, len(failed)))
    if diverged:
        print("diverged (recorded as such):\n  " + "\n  ".join(diverged), file=sys.stderr)
    if failed:
        raise _failures(failed, chosen, plan)
    return DIVERGED if diverged else 0


def _failures(reasons: Mapping[str, str], chosen: Sequence[Cell], plan: Plan) -> ListedError:
    """Return the error that says why cells failed, by their names, and how to run each of them alone."""
    lines = [
        f"\n  {cell.name}: {reasons[cell.name]}\n    alone: {plan.command(cell)}"
        for cell in chosen
        if cell.name in reasons
    ]
    return ListedError(f"{len(reasons)} of {len(chosen)} cells failed:" + "".join(lines))


def _check(cells: Sequence[Cell], config: Config) -> None:
    """End the work here if it cannot be done as it is asked for."""
    from fedbench.engine import compiled
    from fedbench.train import preflight

    preflight.check(cells)
    if len(cells) > 1:  # one alone may be run for other metrics than a table's
        preflight.check_tables(cells)
    if config.compile:
        compiled.check_compiler(config.compile, config.device)


def _ahead(
    plan: Plan, chosen: Sequence[Cell], store: Store, cores: int, stack: contextlib.ExitStack
) -> Ahead | None:
    """Return what trains several runs at a time; None where one is trained after another, in this process."""
    lacking = dict[str, tuple[RunSpec, Cell]]()
    for cell in chosen:
        for run in cell.runs:
            if not store.has(run.key):
                lacking.setdefault(run.key, (run, cell))
    at_once = min(cores, len(lacking))
    if at_once < 2:
        return None
    from fedbench.train import gpus
    from fedbench.train.ahead import Ahead

    if gpus.wanted(plan.config.device):
        return None
    return Ahead(plan, lacking, store, at_once, stack)


def _train(cell: Cell, plan: Plan, store: Store, ahead: Ahead | None) -> list[str]:
    """Train one cell, print the result of each seed when it ends, and return what to say of those that diverged."""
    reporter, told, config = Reporter(), set[str](), plan.keeping(cell)

    def tell(record: Record) -> None:
        if record.key not in told:
            told.add(record.key)
            reporter.clear()
            scores = record.reason or _scores(record.metrics)
            say(f"  seed {record.spec['seed']}: {record.status} {scores}  ({store.path(record.key)})")

    records = [record for run in cell.runs if (record := store.load(run.key))]
    if len(records) == len(cell.runs):
        for record in records:
            store.tidy(record.key)
            tell(record)
        cell_files.write_cell(cell, records)
    else:
        from fedbench.train.training import train_cell

        if ahead is not None:
            ahead.train(cell, tell)
        records = train_cell(cell, config, store, reporter, tell)
    if config.keep_model and any(
        r.status == "finished" and not {MODEL, PREDICTIONS} & {*r.files} for r in records
    ):
        say(
            "  note: runs that were trained before without keep_model have no model or predictions; to train them "
            f"again: fedbench forget {plan.words(cell)}"
        )
    say(f"  {cell.path}, made by: {plan.command(cell)}")
    return [
        f"{cell.name} seed {record.spec['seed']}: {record.reason}"
        for record in records
        if record.status == "diverged"
    ]


def _scores(metrics: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.4f}"
        for name, value in sorted(metrics.items())
        if name.startswith("test_") and value is not None
    )
