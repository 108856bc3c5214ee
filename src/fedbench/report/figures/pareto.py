"""What methods reach against what they cost: a point each, and the front of those that none dominates."""

from __future__ import annotations

import math

from fedbench.errors import UserError
from fedbench.report.figures.content import (
    COLUMNS,
    INTERVAL,
    Content,
    Panel,
    curve,
    joined_curves,
    label_of_x,
    means,
)
from fedbench.report.figures.style import FRONT
from fedbench.results.leaderboard import Board, boards
from fedbench.results.names import axis_text
from fedbench.study.plan import Plan
from fedbench.study.schema import BoardSpec, FigureSpec, TableSpec


def content(plan: Plan, name: str) -> Content:
    """Return a panel for each board with results, without its controls; the title says a scale of its own.

    Raises:
        UserError: the paper has no leaderboard, so no entry says which methods are controls.
    """
    paper, spec = plan.study, plan.figure(name)
    given = next((table.board for table in paper.tables.values() if table.board is not None), None)
    if given is None:
        raise UserError(
            f"{paper.key}/{name}: a figure of kind {spec.kind} needs a leaderboard among the tables"
        )
    table = TableSpec(
        title=spec.title, kind="leaderboard", datasets=spec.datasets, additions=[], methods=spec.methods,
        metrics=spec.metrics, board=BoardSpec(random=given.random, pooled=given.pooled),
    )  # fmt: skip
    shown = boards(plan, table, plan.cells(name))
    panels = [_panel(plan, spec, board) for board in shown if board.dataset is not None]
    known = tuple(str(board.dataset) for board in shown)
    empty = [dataset for dataset in plan.datasets(spec) if dataset not in known]
    axis = label_of_x(spec)
    return Content(panels, COLUMNS, empty, axis, INTERVAL, look="seeds", log=spec.log, elsewhere=known)


def _panel(plan: Plan, spec: FigureSpec, board: Board) -> Panel:
    drawn, best = {}, board.front(spec.x)
    for line in board.ranked:
        cost, label = float(getattr(line.first, spec.x)), axis_text(plan.study, "method", line.method)
        if not line.lost and not math.isnan(cost):
            drawn[line.method] = means(label, [line.first], x=[cost])
    front = joined_curves(points for method, points in drawn.items() if method in best)
    front = front.sort_values("x")[["x", "mean"]]
    front = curve(FRONT, front.assign(low=front["mean"], high=front["mean"]))  # the dots are the methods' own
    remarks = sorted(board.scales - {plan.scale.name})
    hardware = [line.first.hardware for line in board.ranked if line.shown and line.first.hardware]
    several = len({name for names in hardware for name in names.split("; ")}) > 1
    remarks += ["several machines"] if spec.x == "seconds" and several else []
    title = axis_text(plan.study, "dataset", str(board.dataset))
    title += f" ({', '.join(remarks)})" if remarks else ""
    return Panel(title, spec.metrics[0], board.measure.label, joined_curves([*drawn.values(), front]))
