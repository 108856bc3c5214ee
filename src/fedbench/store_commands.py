"""``fedbench store``: what is in the run store, whether it is whole, and how runs move between machines."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbench import cells, configuration
from fedbench.errors import UserError
from fedbench.schema import Config

Pattern = Annotated[
    str,
    typer.Argument(
        help="a key, or a part of a name such as demo/localscgdam/Digits/p4_imratio0.1/CoDA/seed0; * and ? work"
    ),
]


def names() -> dict[str, list[str]]:
    """Name the runs that the configuration asks for at any scale: ``scale/paper/dataset/setting/method/seed``."""
    found: dict[str, list[str]] = {}
    scales = sorted(path.stem for path in (configuration.CONFIG_DIR / "scales").glob("*.yaml"))
    for scale in scales:
        for paper in configuration.paper_keys():
            for cell in cells.cells_of(Config(scale=scale), paper):
                for run in cell.runs:
                    found.setdefault(run.key, []).append(f"{scale}/{cell.name}/seed{run.seed}")
    return found


def _named(key: str, spec: dict[str, Any], known: dict[str, list[str]]) -> list[str]:
    """Name a run; one the configuration does not ask for (any more) by what it trained."""
    unasked = (
        f"-/{spec.get('data', {}).get('dataset', '?')}/{spec.get('method', '?')}/seed{spec.get('seed', '?')}"
    )
    return known.get(key, [unasked])


def _matches(pattern: str, key: str, called: list[str]) -> bool:
    return key.startswith(pattern) or any(fnmatch.fnmatchcase(n, pattern) or pattern in n for n in called)


def _chosen(pattern: str) -> Iterator[tuple[str, list[str], Any]]:
    """Yield key, names and record of the runs that a pattern chooses; the record is the reason where it is damaged."""
    from fedbench.runs import Store, read_run

    store, known = Store(), names()
    for key in store.keys(damaged=True):
        record: Any
        try:
            record = read_run(store.path(key), key)
            called = _named(key, record.spec, known)
        except ValueError as error:
            record, called = error, _named(key, {}, known)
        if _matches(pattern, key, called):
            yield key, called, record


def list_runs(pattern: Pattern = "*") -> None:
    """List the runs of the store: key, state, and the cells they are for."""
    from fedbench.runs import Store

    store, known, count, begun = Store(), names(), 0, 0
    for key, called, record in _chosen(pattern):
        count += 1
        state = f"damaged ({record})" if isinstance(record, ValueError) else record.status
        print(f"{key}  {state:10}  {', '.join(called)}")
    for key in store.unfinished():
        called = _named(key, {}, known)
        if _matches(pattern, key, called):
            begun += 1
            state = "training" if store.in_training(key) else "unfinished"
            print(f"{key}  {state:10}  {', '.join(called)}")
    print(f"{count} runs, {begun} unfinished, in {store.root}")


def verify(
    pattern: Pattern = "*",
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="move damaged runs out of the way: they are trained again")
    ] = False,
) -> None:
    """Hold every run against its checksums, its key and its specification."""
    from fedbench.runs import Store

    damaged, whole = [], 0
    for key, called, record in _chosen(pattern):
        if isinstance(record, ValueError):
            damaged.append(key)
            kept = f"; kept as {Store().set_aside(key)}" if set_aside else ""
            print(f"{key}  damaged: {record} ({', '.join(called)}){kept}")
        else:
            whole += 1
    print(f"{whole} runs are whole, {len(damaged)} damaged")
    if damaged and not set_aside:
        raise UserError(
            f"damaged: {', '.join(damaged)}. `fedbench store verify --set-aside` moves them out of the way; "
            "then they are trained again, or imported"
        )


def export(archive: Path, pattern: Pattern = "*") -> None:
    """Write runs into one archive, to be imported on another machine."""
    from fedbench.exchange import export_runs
    from fedbench.runs import Store

    keys = [key for key, _, _ in _chosen(pattern)]
    if not keys:
        raise UserError(f"no run matches {pattern!r}; `fedbench store list` shows what is there")
    export_runs(Store(), keys, archive)
    print(f"{len(keys)} runs in {archive} ({archive.stat().st_size / 1e3:.0f} kB)")


def import_(sources: Annotated[list[Path], typer.Argument(help="archives, or folders with runs")]) -> None:
    """Take runs from archives or folders; each is checked first, bad ones are refused by name."""
    from fedbench.exchange import import_runs
    from fedbench.runs import Store

    refused = 0
    for source in sources:
        found = import_runs(Store(), source)
        print(f"{source}: {len(found.new)} new runs, {len(found.present)} here already", end="")
        print(f", {len(found.refused)} refused" if found.refused else "")
        for key in found.kept:
            print(f"  {key}: here already with other numbers (another device or version): kept what is here")
        for name, why in found.refused.items():
            print(f"  {name}: refused, {why}")
        refused += len(found.refused)
    print("The next `snakemake` or `fedbench run` takes them into the tables without training.")
    if refused:
        raise UserError(f"{refused} things were refused, as said above; everything else was imported")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_runs, "verify": verify, "export": export, "import": import_,
}  # fmt: skip
