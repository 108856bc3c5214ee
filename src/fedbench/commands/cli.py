"""The ``fedbench`` command: list, run, tune, table, figure, report, document, new, doctor."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fedbench.commands import store_commands
from fedbench.commands.options import (
    CoresOption,
    NotesOption,
    PaperOption,
    ScaleOption,
    SetOption,
    TargetArgument,
    configured,
    configured_for,
    cores_of,
    planned,
)
from fedbench.commands.show import described_cell, described_figure
from fedbench.errors import UserError, explain, unknown
from fedbench.plan import cells, configuration
from fedbench.plan.plan import Plan

app = typer.Typer(
    help="Rebuild the tables of papers on federated learning with imbalanced data, and compare them with print.",
    no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False,
)  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])


def command(name: str, app: typer.Typer = app) -> Callable[[Command], Command]:
    """Register a subcommand whose user errors end as one line and status 2, not as a traceback."""

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BrokenPipeError:  # typer ends quietly when a pipe closes
                raise
            except (UserError, OSError, MemoryError, RuntimeError) as error:
                print(f"error: {explain(error)}", file=sys.stderr)
                raise typer.Exit(2) from None

        app.command(name)(guarded)
        return function

    return register


@command("list")
def list_cells(
    pattern: Annotated[str, typer.Argument(help="a part of a cell's name; default: all cells")] = "*",
    scale: ScaleOption = None,
    paper: PaperOption = None,
    set_: SetOption = None,
) -> None:
    """List the cells of a scale: how many of their runs are in the store, and which are not tuned for their dataset.

    Then tables, figures and papers.
    """
    from fedbench.jobs.progress import whereabouts
    from fedbench.store.runs import Store

    plan, store = Plan(configured_for(pattern, scale, paper, set_)), Store()
    listed = cells.matching(plan.cells(), pattern)
    not_tuned = {cell.name for cell in plan.untuned(listed)}
    for cell in listed:
        done = sum(store.has(run.key) for run in cell.runs)
        now = whereabouts(cell, store)
        said = [f"in training: {now}"] * bool(now) + ["not tuned"] * (cell.name in not_tuned)
        print(", ".join([f"{cell.name}  {done}/{len(cell.runs)} runs", *said]))
    if pattern == "*":
        study = plan.study
        print(f"tables of {study.key}: {', '.join(study.tables) or 'none'}")
        print(f"figures of {study.key}: {', '.join(study.figures) or 'none'}")
        print(f"papers: {', '.join(configuration.paper_keys())}; choose one with --paper KEY")


@command("run")
def run(
    pattern: str, scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None,
    cores: CoresOption = "1",
) -> None:  # fmt: skip
    """Train the cells that match PATTERN; finished runs are taken from the store.

    PATTERN is a cell's name or a part of it, such as a method or a dataset; * matches anything.
    """
    from fedbench.jobs.session import train_all
    from fedbench.store.runs import Store

    config = configured_for(pattern, scale, paper, set_)
    configuration.check_mirror(config)
    plan = Plan(config)
    if status := train_all(plan, cells.matching(plan.cells(), pattern), Store(), cores_of(cores)):
        raise typer.Exit(status)


@command("forget")
def forget(
    pattern: str, scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None
) -> None:
    """Remove the runs of the cells that match PATTERN, so that they are trained again.

    This is needed after a change of a method's code. PATTERN is a cell's name or whole parts of it, such as a method or
    a dataset; * matches anything. One scale's runs are removed: the configuration's, or that of --scale.
    """
    from fedbench.store.forget import forget
    from fedbench.store.runs import Store

    config = configured_for(pattern, scale, paper, set_)
    chosen = cells.matching(Plan(config).cells(), pattern, whole=True)
    print("\n".join(forget(chosen, Store())) or f"none of these cells has a run at scale {config.scale}")


@command("tune")
def tune(
    dataset: str,
    methods: Annotated[list[str] | None, typer.Argument(help="default: all that have a grid")] = None,
    scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None, cores: CoresOption = "1",
) -> None:  # fmt: skip
    """Choose hyper-parameters on DATASET by validation score alone and write them under config/tuned."""
    from fedbench.jobs.progress import say
    from fedbench.jobs.tune import tune_dataset

    config = configured(scale, paper, set_)
    configuration.check_mirror(config)
    for path in tune_dataset(config, config.paper, dataset, methods or None, say, cores_of(cores)):
        print(path)


@command("table")
def table(target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build a table such as localscgdam/table1 from the results on disk."""
    from fedbench.report.tables import build as tables

    for path in tables.build(*planned(target, configured(scale, None, set_), "table")):
        print(path)


@command("show")
def show(
    target: str,
    scale: ScaleOption = None,
    set_: SetOption = None,
    notes: NotesOption = False,
) -> None:
    """Print a table (table1, climb/table2) as text, what a figure shows, or a cell's configuration, layer by layer."""
    from fedbench.report.tables import build as tables

    config = configured(scale, None, set_)
    named = target.partition("/")[0] in configuration.paper_keys() or "/" not in target
    plan, name = planned(target, config) if named else (Plan(config), target)
    if name in plan.study.tables:
        print(tables.show(plan, name, details=notes))
    elif name in plan.study.figures:
        print("\n".join(described_figure(plan, name)))
    else:
        print("\n".join(described_cell(plan, target)))


@command("export")
def export(target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Write a table's measured numbers to reproduced/, the form in which they are kept in git.

    Runs that it has already, from another machine or an earlier code, with the same numbers are listed as verified.
    """
    from fedbench import files
    from fedbench.report.numbers import verified
    from fedbench.report.numbers.export import export_reproduced

    before = files.mark(verified.FILE)
    print(export_reproduced(*planned(target, configured(scale, None, set_), "table")))
    if files.mark(verified.FILE) != before:
        print(verified.FILE)


@command("figure")
def figure(target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build a figure such as localscgdam/figure1 from the results on disk."""
    from fedbench.report.figures import build as figures

    for path in figures.build(*planned(target, configured(scale, None, set_), "figure")):
        print(path)


@command("claims")
def claims(
    paper: Annotated[str | None, typer.Argument(help="a paper's key")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="write the claims table and figure to files")
    ] = False,
    scale: ScaleOption = None,
    set_: SetOption = None,
    notes: NotesOption = False,
) -> None:
    """Say whether a paper's claims hold, in its own numbers and in measured ones; default: all papers."""
    from fedbench.plan.configuration import CONFIG_DIR, paper_keys
    from fedbench.report.tables import claims as tables

    config = configured(scale, None, set_)
    for key in [paper] if paper else paper_keys():
        table = tables.make(Plan(config, key))
        if write:
            from fedbench.report.figures import claims as forest  # Matplotlib takes a second to import

            for path in [*tables.save(table), *forest.save(table)]:
                print(path)
        elif table.findings:
            print(table.terminal(notes))
        elif paper:
            print(f"{paper} makes no claims: there is no `claims:` in {CONFIG_DIR / 'papers' / paper}.yaml")


@command("report")
def report(scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None) -> None:
    """Build report.html: every table, figure, curve, configuration and failure on disk in one page."""
    from fedbench.report.page import build as page

    print(page.build(configured(scale, paper, set_)))


@command("document")
def document(paper: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build reports/PAPER.pdf: the tables and figures of a paper as one LaTeX document."""
    from fedbench.report.document import build as paper_document

    print(paper_document.build(Plan(configured(scale, paper, set_))))


@command("artifact")
def artifact(target: TargetArgument, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Pack a table for evaluators: code, runs, the table, how to check it, as a zip that is an RO-Crate."""
    from fedbench.report.artifact import build as artifacts

    options = [part for option in set_ or [] for part in ("--set", option)]
    print(artifacts.build(*planned(target, configured(scale, None, set_), "table"), options))


@command("checklist")
def checklist(paper: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Write what conferences ask about experiments, from the runs of a paper: reports/PAPER-checklist.{md,tex}."""
    from fedbench.report import checklist as checklists

    for path in checklists.build(Plan(configured(scale, paper, set_))):
        print(path)


@command("new")
def new(
    kind: Annotated[str, typer.Argument(help="method, task or dataset")],
    name: Annotated[str, typer.Argument(help="its file's name, e.g. my_method")],
) -> None:
    """Write a commented skeleton of a method, a task or a dataset, with its test."""
    from fedbench.commands.new import write

    for line in write(kind, name):
        print(line)


@command("doctor")
def doctor(set_: SetOption = None) -> None:
    """Say what is installed, which datasets are there, which device will be used, and how much disk is free."""
    from fedbench.commands.doctor import report

    config = configured(None, None, set_)
    for line in report(config, Path.cwd()):
        print(line)


@command("check")
def check(
    cells_: Annotated[
        list[str] | None, typer.Argument(metavar="[CELL[=ALGORITHM]]...", help="FedAvg, CODA+, LocalSCGDAM")
    ] = None,
    seeds: Annotated[int, typer.Option(help="runs of each cell")] = 5,
    set_: SetOption = None,
) -> None:
    """Train small reference cells and test whether they converge as the shipped runs did; takes minutes."""
    from fedbench.commands import check as reference

    points = []
    for point in reference.check(configured(None, None, set_), cells_ or [], seeds):
        print(f"{point.name}: {len(point.here)} runs trained", file=sys.stderr)
        points.append(point)
    lines, good = reference.compared(points)
    print("\n".join(lines))
    if not good:
        raise typer.Exit(1)


@command("schema")
def schema(
    kind: Annotated[str, typer.Argument(help="config, study, scale or dataset")] = "study",
    write: Annotated[
        bool, typer.Option("--write", help="write all into config/schema, and docs/reference.md")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of YAML file, by which editors complete and check what you write."""
    from fedbench.commands import schema as schemas

    if write:
        print(*schemas.write(), sep="\n")
    elif kind not in schemas.FILES:
        raise unknown("kind of file", kind, schemas.FILES)
    else:
        print(schemas.text_of(kind), end="")


store_app = typer.Typer(help="List, verify, export and import finished runs.", no_args_is_help=True)
for _name, _function in store_commands.COMMANDS.items():
    command(_name, store_app)(_function)
app.add_typer(store_app, name="store")


def main() -> None:
    """Entry point. A terminal that lacks a character shows a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
