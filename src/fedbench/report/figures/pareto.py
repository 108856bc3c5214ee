"""What methods reach against what they cost: a point each, and the front of those that none dominates."""

from __future__ import annotations

import math

import pandas as pd

from fedbench.errors import UserError
from fedbench.report.figures.parts import (
    INTERVAL,
    NO_REPEATS,
    Content,
    Curve,
    Panel,
    across_of,
    interval,
    mean_over,
    repeats_of,
)  # fmt: skip
from fedbench.report.figures.style import BLACK, Style, styles_of
from fedbench.results.leaderboard import Board, boards
from fedbench.results.names import axis_text
from fedbench.study.plan import Plan
from fedbench.study.schema import BoardSpec, FigureSpec, TableSpec

FRONT = "Pareto front"
FRONT_STYLE = Style(BLACK, (0, (4, 2)), "", 0.8)


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
        title=spec.title,
        kind="leaderboard",
        datasets=spec.datasets,
        additions=[],
        methods=spec.methods,
        metrics=spec.metrics,
        board=BoardSpec(random=given.random, pooled=given.pooled),
    )
    shown = [board for board in boards(plan, table, plan.cells(name)) if board.dataset is not None]
    panels = [_panel(plan, spec, board) for board in shown]
    labels = dict.fromkeys(curve.label for panel in panels for curve in panel.curves)
    styles = styles_of([label for label in labels if label != FRONT], paper)
    styles |= {FRONT: FRONT_STYLE} if FRONT in labels else {}
    datasets = [str(board.dataset) for board in shown]
    return Content(panels, across_of(spec), styles, datasets, mean_over(INTERVAL))


def _panel(plan: Plan, spec: FigureSpec, board: Board) -> Panel:
    curves, front, best = [], [], board.front(spec.x)
    for line in board.ranked:
        measured, cost = line.first, float(getattr(line.first, spec.x))
        if line.lost or math.isnan(cost):
            continue
        point = {"x": cost, **interval(measured)}
        label = axis_text(plan.study, "method", line.method)
        curves.append(
            Curve(label, pd.DataFrame([point]), repeats=repeats_of(cost, measured), shipped=measured.shipped)
        )
        if line.method in best:
            front.append({**point, "low": measured.mean, "high": measured.mean})
    if front:
        points = pd.DataFrame(front).sort_values("x", ignore_index=True)
        curves.append(Curve(FRONT, points, repeats=NO_REPEATS))  # the dots are the methods' own
    remarks = sorted(board.scales - {plan.scale.name})
    remarks += ["several machines"] if spec.x == "seconds" and len(board.hardware()) > 1 else []
    title = f"{board.dataset}" + (f" ({', '.join(remarks)})" if remarks else "")
    return Panel(title, spec.metrics[0], board.measure.label, curves)
