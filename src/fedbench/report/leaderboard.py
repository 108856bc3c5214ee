"""A leaderboard as a table: a block for each dataset, methods by rank, with what they cost and all rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedbench.report import described, notes
from fedbench.report.document import Table, origin, stamp
from fedbench.report.layout import BLANK, Entry, grid_of
from fedbench.report.results_table import state_text
from fedbench.results import compare
from fedbench.results.claims.judge import FEWEST
from fedbench.results.collect import provenance
from fedbench.results.frame import NOT_REACHED, Compared
from fedbench.results.leaderboard import Board, Line, boards
from fedbench.results.names import ABSENT, DECIMALS, SHIPPED, axis_text
from fedbench.study.figures import COSTS
from fedbench.study.plan import Plan
from fedbench.study.schema import BoardSpec, Paper, TableSpec

OF_PRINT = (
    "published_mean", "published_std", "published_note", "difference", "half_width", "verdict", "basis",
)  # fmt: skip
"""Columns of a table's CSV that hold it against print: a leaderboard has none."""
WORDS = {"floats_up": "numbers sent", "samples": "samples", "seconds": "seconds"}


def board_table(plan: Plan, name: str) -> Table:
    """Assemble a leaderboard from what was trained here or came with the repository."""
    paper, spec, cells = plan.study, plan.table(name), plan.cells(name)
    assert spec.board is not None
    shown, made = boards(plan, spec, cells), provenance(cells)
    items = [item for board in shown for line in board.lines for item in line.shown]
    keys = sorted({item.key for item in items} - {""})
    mark = stamp(sorted({c for item in items for c in item.commit.split()}), keys)
    not_tuned = plan.named_untuned(plan.untuned(cells))
    metrics = [paper.measure(metric).label for metric in spec.metrics]
    last = [f"{WORDS[spec.board.budget]} to target"] if spec.board.budget else [WORDS[c] for c in COSTS[:2]]
    rows = [
        (_heading(paper, spec.board, board), _label(paper, line.method), _entries(paper, line, spec))
        for board in shown
        for line in board.lines
    ]
    said = [
        *_added(paper, shown),
        notes.untuned(not_tuned),
        *described.weights(cells),
        described.other_data(cells, made["data"], Path(plan.config.data_dir)),
        described.other_code(cells, made["other_code"]),
        *(_ties(paper, board) for board in shown if board.count > 1),
        _shipped(items),
    ]
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=grid_of(["rank", *metrics, *last], rows, "Method"),
        notes=[*filter(None, said)],
        details=[
            *_rules(spec.board, shown, tuned=not not_tuned),
            *described.trained(cells),
            *described.chosen(plan, cells),
            f"{mark}.",
        ],
        rows=_tidy(paper, shown, items, name),
        provenance=origin(plan, name, mark, **made),
    )


def _label(paper: Paper, method: str) -> str:
    return axis_text(paper, "method", method)


def _heading(paper: Paper, board: BoardSpec, ranking: Board) -> str:
    scale = f" ({next(iter(ranking.scales))})" if len(ranking.scales) == 1 else ""
    if ranking.dataset is None:
        names = ", ".join(axis_text(paper, "dataset", str(part.dataset)) for part in ranking.over)
        return f"Average over {names}{scale}, {ranking.measure.label}"
    where = f"{axis_text(paper, 'dataset', ranking.dataset)}{scale}"
    if board.budget is None:
        return where
    amount, target = board.within[ranking.dataset], board.to[ranking.dataset]
    return f"{where}, within {amount:,.0f} {WORDS[board.budget]}; target {ranking.measure.label} {target:g}"


def _entries(paper: Paper, line: Line, spec: TableSpec) -> list[Entry]:
    """Return what stands beside a method: its rank, its numbers, its costs or what it took to the target."""
    board = spec.board
    assert board is not None
    rank = str(line.rank) if line.rank else ("control" if line.method in board.controls else ABSENT)
    rank += f" (as {_label(paper, board.random)})" if line.lost else ""
    rank += f" (is {_label(paper, line.twin)})" if line.twin else ""
    if not line.shown:
        mean = paper.measure(spec.metrics[0]).sign * line.mean
        text = ABSENT if math.isnan(mean) else f"{mean:.{DECIMALS}f}"
        columns_left = len(spec.metrics) if board.budget else len(spec.metrics) + 1
        return [Entry(rank), Entry(text), *[BLANK] * columns_left]
    metrics = line.shown[: len(spec.metrics)]
    numbers = [Entry(*state_text(item, DECIMALS), item=item) for item in metrics]
    first = Entry(rank, item=line.first, part="rank")
    if board.budget:
        return [first, *numbers, Entry(_needed(line.shown[-1]))]
    costs = [float(getattr(line.first, name)) for name in COSTS[:2]]
    known = [not math.isnan(cost) and line.method != board.random for cost in costs]
    last = [Entry(_amount(cost) if said else ABSENT) for cost, said in zip(costs, known, strict=True)]
    return [first, *numbers, *last]


def _needed(measured: Compared) -> str:
    """Return what it took to the target: infinite if a seed missed it, with how many reached it."""
    reached = [value for value in measured.values.values() if math.isfinite(value)]
    if measured.status == NOT_REACHED:
        return f"∞ ({len(reached)}/{len(measured.values)} seeds)" if len(measured.values) > 1 else "∞"
    return _amount(measured.mean) if math.isfinite(measured.mean) else ABSENT


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _rules(board: BoardSpec, shown: Sequence[Board], tuned: bool) -> list[str]:
    """Say how methods were run and ranked."""
    first = shown[0].measure.label if shown else "the first metric"
    when = "the end of training"
    if board.budget:
        when = f"the last evaluation within a budget of {WORDS[board.budget]}, fixed beforehand"
    rules = [
        "Methods of a dataset share partitions, participants and mini-batches of each seed, network, steps, schedule.",
        "Each has one search space for all datasets and the same number of trials, on validation data alone."
        if tuned
        else "",
        f"What counts is {when}: the best test round is never taken. A cell that diverged or failed counts as "
        f"{board.random}. {' and '.join(board.controls)}: controls without a rank.",
        f"{board.pooled}: all data in one place, the same budget; no upper bound." if board.pooled else "",
        "Target: fixed beforehand; ∞: a seed ended without it." if board.budget else "",
    ]
    return [
        " ".join(filter(None, rules)),
        f"Rank: by {first}. Two methods are distinguished by a t-test paired by seed, corrected for all pairs (Holm), "
        "at level 0.05; differences spread by the metric's step at least. The interval begins behind all methods "
        "that are shown to be better and ends before all that are shown to be worse: methods that cannot be "
        "distinguished share ranks. A method that coincides with another one at its values here shares its rank.",
    ]


def _ties(paper: Paper, board: Board) -> str:
    where, seeds, count = "On average", len(board.seeds), board.count
    if board.dataset:
        where = axis_text(paper, "dataset", board.dataset)
    if seeds < FEWEST:
        few = described.counted(seeds, "seed")
        return f"{where}: {few}, too few to distinguish any two of {count} methods: all are tied."
    top = [line for line in board.ranked if line.rank and line.rank.best == 1 and not line.twin]
    if len(top) == count:
        return f"{where}: with {seeds} seeds no two of {count} methods can be distinguished: all are tied."
    names = ", ".join(_label(paper, line.method) for line in top)
    return f"{where}: {len(top)} of {count} methods may be the best ({seeds} seeds): {names}."


def _added(paper: Paper, shown: Sequence[Board]) -> list[str]:
    """Say of methods that this paper adds to another's board where they stand."""
    added = paper.defined.get("methods", []) if paper.extends else []
    said = list[str]()
    for board in shown:
        where = f"on {axis_text(paper, 'dataset', board.dataset)}" if board.dataset else "on average"
        ranked = [line for line in board.ranked if line.method in added]
        said += [
            f"{_label(paper, line.method)} {where}: rank {line.rank} of {board.count}." for line in ranked
        ]
    return said


def _shipped(shown: Sequence[Compared]) -> str:
    count = sum(item.shipped for item in shown)
    partly = sum(item.shipped and item.trained for item in shown)
    rest = f"{partly} of them with seeds trained here" if partly else "not trained here"
    return f"{SHIPPED}: {count} of {len(shown)} numbers are reference results, {rest}." if count else ""


def _tidy(paper: Paper, shown: Sequence[Board], items: Sequence[Compared], name: str) -> pd.DataFrame:
    """Return one row per number, with the rank of its method on its dataset."""
    if not items:
        return pd.DataFrame()
    rows = compare.tidy(pd.DataFrame(map(vars, items)), paper.key, name)
    ranks = {(board.dataset, line.method): line.rank for board in shown for line in board.lines}
    of_rows = [ranks[place] for place in zip(rows["dataset"], rows["method"], strict=True)]
    for place, side in enumerate(("best", "worst"), 3):
        numbers = pd.Series([getattr(rank, side, None) for rank in of_rows], rows.index, "Int64")
        rows.insert(place, f"rank_{side}", numbers)
    return rows.drop(columns=[*OF_PRINT])
