"""The ``fedbench`` command: its subcommands, and how errors end; `report_commands` has those that show results."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fedbench import files, project
from fedbench.commands import report_commands, store_commands
from fedbench.commands.options import CoresOption, PaperOption, ScaleOption, SetOption, configured, cores_of
from fedbench.errors import UserError, explain, unknown
from fedbench.store import cell_files
from fedbench.store.runs import Store
from fedbench.study import cells, configuration
from fedbench.study.plan import Plan
from fedbench.train.progress import say, whereabouts
from fedbench.train.run_cells import train_all

app = typer.Typer(
    help="Rebuild the tables of papers on federated learning with imbalanced data, beside the published numbers.",
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
    pattern: Annotated[str, typer.Argument(help="as of `fedbench run`; default: all cells")] = "*",
    scale: ScaleOption = None,
    paper: PaperOption = None,
    set_: SetOption = None,
) -> None:
    """List the cells of a scale: how many of their runs are in the store, which are not tuned for their dataset, and
    which have runs that other code made than today's.

    Then tables, figures and papers.
    """
    plan, store = Plan(configured(scale, paper or cells.paper_of(pattern), set_)), Store()
    listed = cells.matching(plan.cells(), pattern)
    not_tuned = {cell.name for cell in plan.untuned(listed)}
    for cell in listed:
        done = sum(store.has(run.key) for run in cell.runs)
        now = whereabouts(cell, store)
        said = [f"in training: {now}"] * bool(now) + ["not tuned"] * (cell.name in not_tuned)
        said += ["other code"] * any(cell_files.other_code(cell, store))
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

    PATTERN is a cell's name or a part of it, such as a method or a dataset; * matches anything. One that begins with a
    paper, as climb/ does, is of that paper.
    """
    config = configured(scale, paper or cells.paper_of(pattern), set_)
    configuration.check_mirror(config)
    plan = Plan(config)
    if status := train_all(plan, cells.matching(plan.cells(), pattern), Store(), cores_of(cores)):
        raise typer.Exit(status)


@command("predict")
def predict(
    pattern: Annotated[str, typer.Argument(metavar="CELL", help="the name of a cell, or a part of it")],
    data: Annotated[Path | None, typer.Option(help="a table of further samples to score")] = None,
    images: Annotated[Path | None, typer.Option(help="the folder of the pictures that --data lists")] = None,
    out: Annotated[Path | None, typer.Option(help="the CSV to write; default: print it")] = None,
    scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None,
) -> None:  # fmt: skip
    """Show the score of every test and validation sample of a cell that was trained with keep_model, as CSV.

    With --data its models score the rows of another table, which may lack labels.
    """
    from fedbench.store import predictions

    config = configured(scale, paper or cells.paper_of(pattern), set_)
    plan = Plan(config)
    cell = cells.single(plan.cells(), pattern)
    words = plan.words(cell, keep_model=True)
    if images is not None and data is None:
        raise UserError("--images is the folder of the pictures that --data lists: give --data too")
    if out is not None:
        _check_output(out, data, cell, Path(config.data_dir))
    if data is None:
        table = predictions.load_predictions(cell, Store(), words)
    else:
        from fedbench.train import keeping, training

        table = keeping.score(cell, Store(), data, training.choose_device(config.device), images, words)
    if out is None:
        print(table.to_csv(index=False, lineterminator="\n"), end="")
    else:
        files.write(out, table.to_csv(index=False, lineterminator="\n"))
        print(f"{out}: {len(table)} rows, columns {', '.join(table.columns)}")


def _check_output(out: Path, data: Path | None, cell: cells.Cell, data_dir: Path) -> None:
    """Refuse to write scores over the samples: over the table to score, or a file that was trained on."""
    from fedbench.data import datasets

    samples = [data] if data else []
    for name in cell.runs[0].data.datasets:
        samples += datasets.get(name).sources(data_dir / "raw" / name)
    if out.exists() and any(path.exists() and out.samefile(path) for path in samples):
        raise UserError(f"--out {out} would replace the samples that are scored: give another file")


@command("forget")
def forget(
    pattern: Annotated[
        str, typer.Argument(help="default with --other-code: all of every study and scale")
    ] = "",
    other_code: Annotated[
        bool, typer.Option("--other-code", help="only runs that other code made than today's, with any seed")
    ] = False,
    scale: ScaleOption = None,
    paper: PaperOption = None,
    set_: SetOption = None,
) -> None:
    """Remove the runs of the cells that match PATTERN, so that they are trained again.

    This is needed after a change of the code that trains. PATTERN is a cell's name or whole parts of it,
    such as a method or a dataset; * matches anything. One scale's runs are removed: the configuration's, or that of
    --scale. `fedbench forget --other-code` alone goes through the whole store, trials of `fedbench tune` included.
    """
    if not (pattern or other_code):
        raise UserError("say which cells to forget, such as LocalSGDM, or give --other-code")
    if other_code and not (pattern or scale or paper or set_):
        print("\n".join(cell_files.forget_other_code(Store())) or "other code made no run of the store")
        return
    config = configured(scale, paper or cells.paper_of(pattern), set_)
    chosen = cells.matching(Plan(config).cells(), pattern or "*", whole_parts=True)
    gone = cell_files.forget_other_code(Store(), chosen) if other_code else cell_files.forget(chosen, Store())
    none = "other code made no run of these cells" if other_code else "none of these cells has a run"
    print("\n".join(gone) or f"{none} at scale {config.scale}")


@command("tune")
def tune(
    dataset: str,
    methods: Annotated[list[str] | None, typer.Argument(help="default: all that a table or figure shows on it")] = None,
    scale: ScaleOption = None, paper: PaperOption = None, set_: SetOption = None, cores: CoresOption = "1",
) -> None:  # fmt: skip
    """Choose hyper-parameters on DATASET by validation score alone and write them under config/tuned."""
    from fedbench.train.tune.tuning import tune_dataset

    project.check_own("tune")
    config = configured(scale, paper, set_)
    configuration.check_mirror(config)
    for path in tune_dataset(config, config.paper, dataset, methods or None, say, cores_of(cores)):
        print(path)


for _name, _function in report_commands.COMMANDS.items():
    command(_name)(_function)


@command("init")
def init(folder: Annotated[Path, typer.Argument(help="default: the current folder")] = Path()) -> None:
    """Copy the configuration, the published values, the reference results and the workflow into a folder to change.

    Without a copy, commands use those that were installed. A file that exists is never overwritten.
    """
    print(
        f"{len(project.start(folder))} files; `snakemake --cores all tables/table1.md` builds Table 1 in {folder}"
    )


@command("doctor")
def doctor(set_: SetOption = None) -> None:
    """Say what is installed, which datasets are there, which device will be used, and how much disk is free."""
    from fedbench.commands.doctor import report

    config = configured(None, None, set_)
    for line in report(config, Path.cwd()):
        print(line)


@command("schema")
def schema(
    kind: Annotated[str, typer.Argument(help="config, study, scale or dataset")] = "study",
    write: Annotated[bool, typer.Option("--write", help="write all into config/schema")] = False,
) -> None:
    """Print the JSON Schema of a kind of YAML file, by which editors complete and check what you write."""
    from fedbench.commands import schema as schemas

    if write:
        print(*schemas.write_schemas(), sep="\n")
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
