"""What methods reach against what they cost: a point each, and the front of those that none dominates."""

from __future__ import annotations

import pandas as pd

from fedbench.errors import UserError
from fedbench.plan.plan import Plan
from fedbench.plan.schema import BoardSpec, FigureSpec, Paper, Scale, TableSpec
from fedbench.report.figures.parts import INTERVAL, Content, Curve, Panel, across_of, interval, mean_over
from fedbench.report.figures.style import BLACK, Style, styles_of
from fedbench.report.numbers.leaderboard import Board, boards
from fedbench.report.numbers.names import axis_text

FRONT = "Pareto front"
FRONT_STYLE = Style(BLACK, (0, (4, 2)), "", 0.8)


def boards_of(plan: Plan, name: str) -> list[Board]:
    """Collect the board of each dataset with results, trained here or shipped.

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
    return [board for board in boards(plan, table, plan.cells(name)) if board.dataset is not None]


def content(plan: Plan, name: str) -> Content:
    """Return a panel for each board, without its controls; the title says a scale that is not the figure's."""
    paper, spec, shown = plan.study, plan.figure(name), boards_of(plan, name)
    panels = [_panel(paper, plan.scale, spec, board) for board in shown]
    labels = [curve.label for panel in panels for curve in panel.curves]
    methods = {axis_text(paper, "method", method): method for method in spec.methods}
    front = {FRONT: FRONT_STYLE} if FRONT in labels else {}
    styles = {**styles_of([label for label in labels if label != FRONT], methods), **front}
    return Content(
        panels, across_of(spec), styles, [str(board.dataset) for board in shown], mean_over(INTERVAL)
    )


def _panel(paper: Paper, scale: Scale, spec: FigureSpec, board: Board) -> Panel:
    curves, front = [], []
    for line in board.ranked:
        cost = float(getattr(line.first, spec.x))
        if line.lost or cost != cost:
            continue
        measured = line.first
        point = {"x": cost, **interval(measured)}
        repeats = pd.DataFrame([{"x": cost, "value": value} for value in measured.values.values()])
        label = axis_text(paper, "method", line.method)
        curves.append(Curve(label, pd.DataFrame([point]), repeats=repeats, shipped=measured.shipped))
        if board.dominator(line.method, spec.x) is None:
            front.append({**point, "low": measured.mean, "high": measured.mean})
    if front:
        # no dots: the methods' own are there
        points = pd.DataFrame(front).sort_values("x", ignore_index=True)
        curves.append(Curve(FRONT, points, repeats=pd.DataFrame({"x": [], "value": []})))
    remarks = sorted(board.scales - {scale.name})
    remarks += ["several machines"] if spec.x == "seconds" and len(board.hardware()) > 1 else []
    remark = f" ({', '.join(remarks)})" if remarks else ""
    falls = paper.measure(spec.metrics[0]).better == "lower"
    return Panel(f"{board.dataset}{remark}", spec.metrics[0], board.measure.label, curves, falls=falls)
