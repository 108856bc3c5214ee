"""A leaderboard as a table: a block for each dataset, methods by rank, with what they cost and all rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedbench.plan.plan import Plan
from fedbench.plan.schema import BoardSpec, Paper, TableSpec
from fedbench.plan.untuned import methods_by_dataset
from fedbench.report.numbers import compare, described
from fedbench.report.numbers.compare import Compared
from fedbench.report.numbers.leaderboard import COSTS, Board, Line, boards
from fedbench.report.numbers.names import ABSENT, SHIPPED
from fedbench.report.numbers.origin import provenance
from fedbench.report.numbers.ranking import Rank
from fedbench.report.numbers.rows import NOT_REACHED
from fedbench.report.tables import notes_rules
from fedbench.report.tables.document import Table, origin, stamp
from fedbench.report.tables.layout import Block, Entry, Grid, Row, state_text
from fedbench.results.claims.judge import FEWEST

DECIMALS = 3
INDEPENDENT = 6
"""Datasets from which a critical-difference diagram would mean something."""
OF_PRINT = (
    "published_mean", "published_std", "published_note", "difference", "half_width", "verdict", "basis",
)  # fmt: skip
"""Columns of a table's CSV that hold it against print: a leaderboard has none."""
WORDS = {"floats_up": "numbers sent", "samples": "samples", "seconds": "seconds"}


def make(plan: Plan, name: str) -> Table:
    """Assemble a leaderboard from what was trained here or came with the repository."""
    paper, spec, cells = plan.study, plan.table(name), plan.cells(name)
    assert spec.board is not None
    found = boards(plan, spec, cells)
    made = provenance(cells)
    shown = [item for board in found for line in board.lines for item in line.shown]
    keys = sorted({item.measured.key for item in shown} - {""})
    commits = sorted({c for item in shown for c in item.measured.commit.split()})
    mark = stamp(commits, keys)
    ranked = [board for board in found if board.ranked]
    not_tuned = plan.untuned(cells)
    facts = [*described.trained(cells), *described.chosen(plan, cells)]
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=_grid(paper, spec, spec.board, found),
        notes=[
            *_own(paper, found),
            *notes_rules.untuned(methods_by_dataset(not_tuned)),
            *notes_rules.other_data(described.other_data(cells, made["data"], Path(plan.config.data_dir))),
            *map(_ties, ranked),
            *_shipped(shown),
        ],
        details=[*_rules(spec.board, found, tuned=not not_tuned), *facts, f"{mark}."],
        rows=_tidy(found, shown, name),
        provenance=origin(plan, name, mark, **made),
    )


def _grid(paper: Paper, spec: TableSpec, board: BoardSpec, found: Sequence[Board]) -> Grid:
    names = [paper.measure(metric).label for metric in spec.metrics]
    last = [f"{WORDS[board.budget]} to target"] if board.budget else [WORDS[name] for name in COSTS[:2]]
    blocks = []
    for one in found:
        rows = [_row(line, spec, board) for line in one.lines]
        blocks.append(Block(_heading(board, one), rows, []))
    return Grid("Method", [[(name, 1) for name in ("rank", *names, *last)]], blocks, compares=False)


def _heading(board: BoardSpec, one: Board) -> str:
    scale = f" ({next(iter(one.scales))})" if len(one.scales) == 1 else ""
    if one.dataset is None:
        return (
            f"Average over {', '.join(str(board.dataset) for board in one.over)}{scale}, {one.measure.label}"
        )
    where = f"{one.dataset}{scale}"
    if board.budget is None:
        return where
    amount, target = board.within[one.dataset], board.to[one.dataset]
    return f"{where}, within {amount:,.0f} {WORDS[board.budget]}; target {one.measure.label} {target:g}"


def _row(line: Line, spec: TableSpec, board: BoardSpec) -> Row:
    rank = str(line.rank) if line.rank else ("control" if line.method in board.controls else ABSENT)
    rank = f"{rank} (as {board.random})" if line.lost else rank
    rank = f"{rank} (is {line.twin})" if line.twin else rank
    columns = len(spec.metrics) + (1 if board.budget else 2)
    if not line.shown:
        mean = "" if math.isnan(line.mean) else f"{abs(line.mean):.{DECIMALS}f}"
        return Row(line.method, [[Entry(rank), Entry(mean or ABSENT), *[Entry("")] * (columns - 1)]], [])
    entries = [Entry(*state_text(item, DECIMALS)) for item in line.shown[: len(spec.metrics)]]
    if board.budget:
        last = [Entry(_needed(line.shown[-1]))]
    else:
        costs = (float(getattr(line.measured.cost, name)) for name in COSTS[:2])
        last = [
            Entry(ABSENT if math.isnan(cost) or line.method == board.random else _amount(cost))
            for cost in costs
        ]
    return Row(line.method, [[Entry(rank), *entries, *last]], [])


def _needed(item: Compared) -> str:
    """Return what it took to the target: infinite if a seed missed it, with how many reached it."""
    one = item.measured
    reached = [value for value in one.values.values() if math.isfinite(value)]
    if one.status == NOT_REACHED:
        return f"∞ ({len(reached)}/{len(one.values)} seeds)" if len(one.values) > 1 else "∞"
    return _amount(one.mean) if math.isfinite(one.mean) else ABSENT


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _rules(board: BoardSpec, found: Sequence[Board], tuned: bool) -> list[str]:
    first = found[0].measure.label if found else "the first metric"
    when = "the end of training"
    if board.budget:
        when = f"the last evaluation within a budget of {WORDS[board.budget]}, fixed beforehand"
    lines = [
        "Rules. Methods of a dataset share partitions, participants and mini-batches of each seed, network, steps and "
        "schedule. "
        + (
            "Each has one search space for all datasets and the same number of trials, on validation data alone. "
            if tuned
            else ""
        )
        + f"What counts is {when}: the best test round is never taken. A cell that diverged or failed counts as "
        f"{board.random}. {' and '.join(board.controls)}: controls without a rank."
        + (
            f" {board.pooled}: all data in one place, the same budget; no upper bound."
            if board.pooled
            else ""
        ),
        f"Rank: by {first}. Two methods are distinguished by a t-test paired by seed, corrected for all pairs (Holm), "
        "at level 0.05, from five seeds on confirmed by exact sign flips. The interval begins behind all methods "
        "that are shown to be better and ends before all that are shown to be worse: methods that cannot be "
        "distinguished share ranks. A method that coincides with another one at its values here shares its rank.",
    ]
    if board.budget:
        lines.append("Target: fixed beforehand; ∞: a seed ended without it.")
    if board.budget == "seconds":
        machines = sorted(set[str]().union(*(one.hardware() for one in found)))
        lines.append(
            f"Seconds of training and evaluation, on one machine ({machines[0]})."
            if len(machines) == 1
            else f"Not one machine ({'; '.join(machines) or 'unknown'}): ranks by seconds compare machines here."
        )
    count = sum(one.dataset is not None for one in found)
    lines.append(
        f"No critical-difference diagram: it needs {INDEPENDENT} independent datasets, and there are {count}."
        if count < INDEPENDENT
        else f"Shown are {count} datasets."
    )
    return lines


def _ties(one: Board) -> str:
    where, seeds, count = one.dataset or "On average", len(one.seeds), one.count
    if seeds < FEWEST:
        few = f"{seeds} seed{'s' * (seeds != 1)}"
        return f"{where}: {few}, too few to distinguish any two of {count} methods: all are tied."
    if one.tied:
        return f"{where}: with {seeds} seeds no two of {count} methods can be distinguished: all are tied."
    top = [line.method for line in one.ranked if line.rank and line.rank.best == 1 and not line.twin]
    return f"{where}: {len(top)} of {count} methods may be the best ({seeds} seeds): {', '.join(top)}."


def _own(paper: Paper, found: Sequence[Board]) -> list[str]:
    """Say of methods that this paper adds to another's board where they stand."""
    own = paper.defined.get("methods", []) if paper.extends else []
    said = []
    for board in found:
        for line in board.ranked:
            if line.method not in own:
                continue
            where = f"on {board.dataset}" if board.dataset else "on average"
            text = f"{line.method} {where}: rank {line.rank} of {board.count}"
            said.append(f"{text}{_front(board, line)}.")
    return said


def _front(board: Board, line: Line) -> str:
    if board.dataset is None:
        return ""
    parts = []
    for cost in COSTS:
        if cost == "seconds" and len(board.hardware()) > 1:
            parts.append("seconds were measured on several machines")
            continue
        over = board.dominator(line.method, cost)
        parts.append(
            f"on the Pareto front of {board.measure.label} and {WORDS[cost]}"
            if over is None
            else f"dominated by {over} in {board.measure.label} and {WORDS[cost]} (by means)"
        )
    return "; " + "; ".join(parts)


def _shipped(shown: Sequence[Compared]) -> list[str]:
    count = sum(item.measured.shipped for item in shown)
    return [f"{SHIPPED}: {count} of {len(shown)} numbers are shipped, not trained here."] if count else []


def _tidy(found: Sequence[Board], shown: Sequence[Compared], name: str) -> pd.DataFrame:
    """Return one row per number, with the rank of its method on its dataset."""
    placed: dict[tuple[str, str], Rank | None] = {
        (board.dataset, line.method): line.rank for board in found if board.dataset for line in board.lines
    }
    rows = compare.tidy(shown, name)
    if rows.empty:
        return rows
    own = [placed[place] for place in zip(rows["dataset"], rows["method"], strict=True)]
    rows.insert(3, "rank_best", [rank.best if rank else None for rank in own])
    rows.insert(4, "rank_worst", [rank.worst if rank else None for rank in own])
    for column in ("rank_best", "rank_worst"):
        rows[column] = rows[column].astype("Int64")
    return rows.drop(columns=[*OF_PRINT])
