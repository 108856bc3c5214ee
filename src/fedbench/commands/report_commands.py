"""The ``fedbench`` commands that show results: as tables, figures, claims, pages and artifacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbench import project
from fedbench.commands.options import (
    NotesOption,
    PaperOption,
    RequestOption,
    ScaleOption,
    SetOption,
    TargetArgument,
    configured,
    planned,
)
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.workflow import requests


def _asked(
    target: str, kind: str, scale: str | None, set_: list[str] | None, request: Path | None
) -> tuple[Plan, str]:
    """Read what is to be built. Without a request it is not what the workflow asked for: its next call builds it."""
    plan, name = planned(target, configured(scale, None, set_, request), kind)
    if request is None:
        requests.drop(plan.study.key, name)
    return plan, name


def table(
    target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None, request: RequestOption = None
) -> None:
    """Build a table such as localscgdam/table1 from the results on disk."""
    from fedbench.report import tables

    for path in tables.save_table(*_asked(target, "table", scale, set_, request)):
        print(path)


def show(target: str, scale: ScaleOption = None, set_: SetOption = None, notes: NotesOption = False) -> None:
    """Print a table (table1, climb/table2) as text, what a figure shows, or a cell's configuration, layer by layer."""
    from fedbench.commands.show import described_cell, described_figure
    from fedbench.report import tables

    config = configured(scale, None, set_)
    named = target.partition("/")[0] in configuration.paper_keys() or "/" not in target
    plan, name = planned(target, config) if named else (Plan(config), target)
    if name in plan.study.tables:
        print(tables.table_of(plan, name).terminal(notes))
    elif name in plan.study.figures:
        print("\n".join(described_figure(plan, name)))
    else:
        print("\n".join(described_cell(plan, target)))


def export(
    target: TargetArgument,
    curves: Annotated[
        bool, typer.Option("--curves", help="the runs' curves too, thinned to 100 points, for figures")
    ] = False,
    scale: ScaleOption = None,
    set_: SetOption = None,
) -> None:
    """Write a table's measured numbers, or counts of data, to reproduced/, the form in which they are kept in git."""
    from fedbench.report import facts
    from fedbench.results.export import add_curves, export_reproduced

    project.check_own("export")
    plan, name = planned(target, configured(scale, None, set_), "table")
    if plan.table(name).kind == "facts":
        print(facts.export(plan, name))
        return
    print(export_reproduced(plan, name))
    for path in add_curves(plan, plan.cells(name)) if curves else ():
        print(path)


def figure(
    target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None, request: RequestOption = None
) -> None:
    """Build a figure such as localscgdam/figure1 from the results on disk."""
    from fedbench.report.figures import build as figures

    for path in figures.save_figure(*_asked(target, "figure", scale, set_, request)):
        print(path)


def claims(
    paper: Annotated[str | None, typer.Argument(help="a paper's key")] = None,
    write: Annotated[bool, typer.Option("--write", help="write the claims table to files")] = False,
    scale: ScaleOption = None,
    set_: SetOption = None,
    notes: NotesOption = False,
    request: RequestOption = None,
) -> None:
    """Say whether a paper's claims hold, in its own numbers and in measured ones; default: all papers, all scales."""
    from fedbench.report import claims
    from fedbench.report.processes import at_once

    config = configured(scale, None, set_, request)
    plans = [Plan(config, key) for key in ([paper] if paper else configuration.paper_keys())]
    for table in at_once(claims.claim_table, plans):
        if not table.findings and request is None:
            if paper:
                print(f"{paper} makes no claims: there is no `claims:` in {configuration.study_path(paper)}")
        elif write:
            if request is None:
                requests.drop(table.paper.key, "claims")
            for path in claims.save(table):
                print(path)
        else:
            print(table.terminal(notes, scale))


def report(
    scale: ScaleOption = None,
    paper: PaperOption = None,
    set_: SetOption = None,
    request: RequestOption = None,
) -> None:
    """Build report.html: every table, figure, curve, configuration and failure on disk in one page."""
    from fedbench.report.page import build as page

    config = configured(scale, paper, set_, request)
    if request is None:
        requests.drop("report")
    print(page.save_page(config))


def typeset(
    tex: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="tables/climb/table2.tex")],
) -> None:
    """Compile a table to the PDF beside it."""
    from fedbench.report.pdf import build_pdf

    print(build_pdf(tex))


def artifact(target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Pack a table for evaluators: code, runs, the table, how to check it, as a zip."""
    from fedbench.report import artifact as artifacts

    options = [part for option in set_ or [] for part in ("--set", option)]
    print(artifacts.save_artifact(*planned(target, configured(scale, None, set_), "table"), options))


COMMANDS: dict[str, Callable[..., Any]] = {
    "table": table,
    "typeset": typeset,
    "show": show,
    "export": export,
    "figure": figure,
    "claims": claims,
    "report": report,
    "artifact": artifact,
}
"""By their names, in the order in which they are listed."""
