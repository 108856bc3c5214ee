"""``fedbench store``: what is in the run store, whether it is whole, and how runs move between machines."""

from __future__ import annotations

import collections
import fnmatch
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbench.errors import ReadError, UserError, shortened, visible
from fedbench.store import cell_files
from fedbench.store.exchange import export_runs, import_runs
from fedbench.store.record import read_run
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

log = logging.getLogger(__name__)
Known = dict[str, list[str]]
Pattern = Annotated[
    str,
    typer.Argument(
        help="a key, or a part of a name such as demo/localscgdam/Digits/p4_imratio0.1/CoDA/seed0; * and ? work"
    ),
]


def names(seeds: Iterable[int] = ()) -> Known:
    """Name the runs of all papers at any scale: ``scale/paper/dataset/setting/method/seed``.

    All datasets of a paper count, whether or not the scale runs them unasked, and besides the scale's seeds those
    given. What has a mistake in its configuration stays without a name; one warning for each paper says so.
    """
    by_key: Known = {}
    mistakes: dict[str, UserError] = {}
    for paper, scale in itertools.product(configuration.paper_keys(), configuration.scale_names()):
        try:
            wanted = sorted({*seeds, *configuration.load_scale(scale).seeds})
            plan = Plan(Config(scale=scale), paper)
            for dataset in plan.study.datasets:
                for cell in plan.at(Config(scale=scale, seeds=wanted, datasets=[dataset])).cells():
                    for run in cell.runs:
                        by_key.setdefault(run.key, []).append(f"{scale}/{cell.name}/seed{run.seed}")
        except UserError as error:
            mistakes.setdefault(paper, error)
    for paper, mistake in mistakes.items():
        log.warning("runs of the paper %s are not all named: %s", paper, " ".join(str(mistake).split()))
    return {key: sorted(called) for key, called in by_key.items()}


def _named(key: str, spec: dict[str, Any], known: Known) -> list[str]:
    """Name a run; one the configuration does not ask for (any more) by what it trained."""
    unasked = (
        f"-/{spec.get('data', {}).get('dataset', '?')}/{spec.get('method', '?')}/seed{spec.get('seed', '?')}"
    )
    return known.get(key, [unasked])


def _matches(pattern: str, key: str, called: list[str]) -> bool:
    return key.startswith(pattern) or any(fnmatch.fnmatchcase(n, pattern) or pattern in n for n in called)


def _records() -> tuple[dict[str, Any], Known]:
    """Read the runs of the store by key, damaged ones as the reason; return them and the names of all runs."""
    store, records = Store(), dict[str, Any]()
    for key in store.keys(damaged=True):
        try:
            records[key] = read_run(store.path(key), key)
        except (ValueError, ReadError) as error:
            records[key] = error
    seeds = {record.spec["seed"] for record in records.values() if not isinstance(record, Exception)}
    return records, names(seeds)


def _chosen(pattern: str, records: dict[str, Any], known: Known) -> Iterator[tuple[str, list[str], Any]]:
    """Yield key, names and record of the runs that a pattern chooses."""
    for key, record in records.items():
        called = _named(key, {} if isinstance(record, Exception) else record.spec, known)
        if _matches(pattern, key, called):
            yield key, called, record


def _nothing_matches(pattern: str) -> UserError:
    """Build the error for a pattern that chooses nothing."""
    return UserError(f"no run matches {pattern!r}; `fedbench store list` shows what is there")


def _kind(record: Any) -> str:
    """Say what is the matter with a run: ``whole``, ``damaged`` or ``unreadable``."""
    if isinstance(record, ReadError):
        return "unreadable"
    return "damaged" if isinstance(record, ValueError) else "whole"


def list_runs(pattern: Pattern = "*") -> None:
    """List the runs of the store: key, state, and the cells they are for."""
    store, (records, known), count, begun = Store(), _records(), 0, 0
    for key, called, record in _chosen(pattern, records, known):
        count += 1
        state = record.status if (kind := _kind(record)) == "whole" else f"{kind} ({record})"
        print(visible(f"{key}  {state:10}  {', '.join(called)}"))
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
    """Hold every run against its checksums, its key and its specification, and all prepared data against theirs.

    A run that cannot be read now is not damaged: it is named and stays. With a pattern, data are left out.
    """
    store, count, left = Store(), collections.Counter[str](), list[str]()
    for key, called, record in _chosen(pattern, *_records()):
        kind, done = _kind(record), ""
        if kind == "damaged" and set_aside:
            again = "".join(f"; {path} is made again" for path in cell_files.drop([key]))
            done = f"; kept as {store.set_aside(key)}{again}"
        count[kind] += 1
        if kind != "whole":
            print(visible(f"{key}  {kind}: {record} ({', '.join(called)}){done}"))
            left += [] if done else [f"{key} ({kind})"]
    others = "".join(f", {n} {kind}" for kind, n in count.items() if kind not in ("whole", "damaged"))
    if pattern != "*" and not count:
        raise _nothing_matches(pattern)
    print(f"{count['whole']} runs are intact, {count['damaged']} damaged{others}")
    if pattern == "*":
        _verify_data(Path(configuration.load_config().data_dir))
    if left:
        raise UserError(
            f"not whole: {', '.join(left)}. `fedbench store verify --set-aside` moves damaged runs out of the way; "
            "then they are trained again, or imported. Unreadable runs are left in place"
        )


def _verify_data(data_dir: Path) -> None:
    """Read all prepared arrays and partitions; say which are damaged: they are made again when they are needed."""
    from fedbench.data import files

    checked = [*files.check_all(data_dir)]
    wrong = [f"{path} is damaged and will be made again: {why}" for path, why in checked if why]
    if checked:
        print("\n".join([*map(visible, wrong), f"{len(checked) - len(wrong)} files of data are intact"]))


def export(archive: Path, pattern: Pattern = "*") -> None:
    """Write runs into one archive, to be imported on another machine."""
    keys = [key for key, _, _ in _chosen(pattern, *_records())]
    if not keys:
        raise _nothing_matches(pattern)
    export_runs(Store(), keys, archive)
    print(f"{len(keys)} runs in {archive} ({archive.stat().st_size / 1e3:.0f} kB)")


def import_(sources: Annotated[list[Path], typer.Argument(help="archives, or folders with runs")]) -> None:
    """Take runs from archives or folders; each is checked first, bad ones are refused by name."""
    taken = refused = 0
    for source in sources:
        imported = import_runs(Store(), source)
        print(f"{source}: {len(imported.new)} new runs, {len(imported.present)} here already", end="")
        print(f", {len(imported.refused)} refused" if imported.refused else "")
        for key in imported.kept:
            print(f"  {key}: here already with other numbers (another device or version): kept what is here")
        for name, why in imported.refused.items():
            print(f"  {shortened(name)}: refused, {shortened(why)}")
        taken += len(imported.new) + len(imported.present) + len(imported.kept)
        refused += len(imported.refused)
    if taken:
        print("The next `snakemake` or `fedbench run` takes them into the tables without training.")
    if refused:
        raise UserError(f"{refused} things were refused, as said above; everything else was imported")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_runs, "verify": verify, "export": export, "import": import_,
}  # fmt: skip
