"""The ``fedbench`` command: list, run, tune, table, figure, report, document, new, doctor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml

from fedbench import cells, configuration, store_commands
from fedbench.errors import UserError, explain
from fedbench.schema import Config

app = typer.Typer(
    help="Do the tables of federated-learning papers on imbalanced data hold?", no_args_is_help=True,
    pretty_exceptions_enable=False, add_completion=False,
)  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])
ScaleOption = Annotated[str | None, typer.Option(help="demo, reduced or paper; default: the configuration's")]
PaperOption = Annotated[str | None, typer.Option(help="a paper's key; default: the configuration's")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="any key of config/config.yaml, for this call"),
]


def command(name: str, app: typer.Typer = app) -> Callable[[Command], Command]:
    """Register a subcommand whose user errors end as one line and status 2, not as a traceback."""

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except (UserError, OSError) as error:
                print(f"error: {explain(error)}", file=sys.stderr)
                raise typer.Exit(2) from None

        app.command(name)(guarded)
        return function

    return register


def configured(scale: str | None, paper: str | None, overrides: list[str] | None) -> Config:
    """Read the configuration with this call's options laid over it."""
    given: dict[str, Any] = {"scale": scale, "paper": paper}
    for item in overrides or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"--set takes KEY=VALUE, not {item!r}")
        try:
            given[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(f"--set {key}: {value!r} is not valid YAML") from None
    return configuration.load_config(overrides=given)


def configured_for(pattern: str, scale: str | None, paper: str | None, overrides: list[str] | None) -> Config:
    """Read the configuration likewise; the full name of a cell names its paper, unless the option does."""
    named = pattern.split("/")[0] if pattern.count("/") == 3 else ""
    exact = named if not set(named) & set("*?[") else ""
    return configured(scale, paper or exact or None, overrides)


@command("list")
def list_cells(
    pattern: Annotated[str, typer.Argument()] = "*",
    scale: ScaleOption = None,
    paper: PaperOption = None,
    set_: SetOption = None,
) -> None:
    """List the cells of a scale, with how many of their runs are in the store."""
    from fedbench.progress import whereabouts
    from fedbench.runs import Store

    config, store = configured_for(pattern, scale, paper, set_), Store()
    for cell in cells.matching(cells.cells_of(config, config.paper), pattern):
        done = sum((store.path(run.key) / "run.json").exists() for run in cell.runs)
        now = whereabouts(cell, store)
        print(f"{cell.name}  {done}/{len(cell.runs)} runs" + (f", in training: {now}" if now else ""))


@command("run")
def run(pattern: str, scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None) -> None:
    """Train the cells that match PATTERN; finished runs are taken from the store."""
    from fedbench.runs import Store
    from fedbench.session import train_all

    config = configured_for(pattern, scale, paper, set_)
    status = train_all(cells.matching(cells.cells_of(config, config.paper), pattern), config, Store())
    if status:
        raise typer.Exit(status)


@command("forget")
def forget(
    pattern: str, scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None
) -> None:
    """Remove the runs of the cells that match PATTERN: after a change of a method's code they are made anew.

    PATTERN is a cell's name or whole parts of it, such as a method or a dataset; * stands for more. One scale's runs
    are removed: the configuration's, or that of --scale.
    """
    from fedbench.forget import forget
    from fedbench.runs import Store

    config = configured_for(pattern, scale, paper, set_)
    chosen = cells.matching(cells.cells_of(config, config.paper), pattern, whole=True)
    print("\n".join(forget(chosen, Store())) or f"none of these cells has a run at scale {config.scale}")


@command("tune")
def tune(
    dataset: str, methods: Annotated[list[str] | None, typer.Argument()] = None,
    scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None,
) -> None:  # fmt: skip
    """Choose hyper-parameters on DATASET by validation score alone and write them under config/tuned."""
    from fedbench.tune import tune_dataset

    config = configured(scale, paper, set_)
    print(tune_dataset(config, config.paper, dataset, methods or None, print))


@command("table")
def table(target: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build a table such as localscgdam/table1 from the results that are there."""
    from fedbench.report import tables

    paper, name = _target(target)
    for path in tables.build(paper, name, configured(scale, None, set_)):
        print(path)


@command("show")
def show(target: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Print a table such as localscgdam/table1, or table1 of the configured paper, as text."""
    from fedbench.report import tables

    config = configured(scale, None, set_)
    paper, name = _target(target if "/" in target else f"{config.paper}/{target}")
    print(tables.show(paper, name, config))


@command("export")
def export(target: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Write a table's measured numbers to reproduced/, the form in which they are kept in git."""
    from fedbench.report.export import export_reproduced

    paper, name = _target(target)
    print(export_reproduced(paper, name, configured(scale, None, set_)))


@command("figure")
def figure(target: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build a figure such as localscgdam/figure1 from the results that are there."""
    from fedbench.report import figures

    paper, name = _target(target)
    for path in figures.build(paper, name, configured(scale, None, set_)):
        print(path)


@command("report")
def report(scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None) -> None:
    """Build report.html: every table, figure, curve, configuration and failure on disk in one page."""
    from fedbench.report import page

    print(page.build(configured(scale, paper, set_)))


@command("document")
def document(paper: str, scale: ScaleOption = None, set_: SetOption = None) -> None:
    """Build reports/PAPER.pdf: the tables and figures of a paper as one LaTeX document."""
    from fedbench.report import paper_document

    print(paper_document.build(paper, configured(scale, paper, set_)))


@command("new")
def new(
    kind: Annotated[str, typer.Argument(help="method or dataset")],
    name: Annotated[str, typer.Argument(help="its file's name, e.g. my_method")],
) -> None:
    """Write a commented skeleton of a method or a dataset, with its test."""
    from fedbench.new import write

    for line in write(kind, name):
        print(line)


@command("doctor")
def doctor(set_: SetOption = None) -> None:
    """Say what is installed, which datasets are there, which device will be used, and how much disk is free."""
    from fedbench.doctor import report

    config = configured(None, None, set_)
    for line in report(config, Path.cwd()):
        print(line)


store_app = typer.Typer(help="List, verify, export and import finished runs.", no_args_is_help=True)
for _name, _function in store_commands.COMMANDS.items():
    command(_name, store_app)(_function)
app.add_typer(store_app, name="store")


def _target(text: str) -> tuple[str, str]:
    paper, slash, name = text.partition("/")
    if not slash:
        raise UserError(f"{text!r} names no table or figure; write PAPER/NAME, e.g. localscgdam/table1")
    return paper, name


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
