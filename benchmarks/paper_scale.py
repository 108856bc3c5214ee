"""Train runs at the papers' own scale for a given time, and add them to ``reproduced/paper``.

Runs that are shipped are left out, the others follow in :data:`ORDER`: one on each core, or :data:`SHARING` at a time
on a GPU. One that is in the store, imported from another machine, is taken from there. When the time is up, running
ones are stopped; they go on from their checkpoints with the next call.

    python benchmarks/paper_scale.py --hours 8                                    (or: make paper-scale HOURS=8)
    python benchmarks/paper_scale.py --hours 1 --device cuda --checks --archive gpu-runs.tar.gz   (or: make gpu)

The archive holds all runs of the store; elsewhere, ``fedbench store import gpu-runs.tar.gz`` adds them, and this
program writes them into ``reproduced/paper``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fedbench.engine import compiled
from fedbench.errors import UserError
from fedbench.jobs import gpus
from fedbench.plan.cells import Cell
from fedbench.plan.configuration import load_config
from fedbench.plan.plan import Plan
from fedbench.report.numbers import shipped_curves
from fedbench.report.numbers.export import export_reproduced

HERE = Path(__file__).parent
CHECKS = (
    ["-m", "pytest", "-q", str(HERE.parent / "tests/unit/engine/test_devices.py")],
    [str(HERE / "stacked.py"), "--device", "cuda"],
)
SHARING = 8
"""Runs that share a GPU, whose kernels are small: measured in benchmarks/README.md."""
SAVED_WITHIN = 120
"""Seconds that a stopped run has to write its checkpoint."""


@dataclass(frozen=True)
class Part:
    """Cells of a table that are trained together, with one seed.

    Attributes:
        paper: whose table it is.
        table: its name.
        dataset: the dataset whose cells are meant.
        seed: the seed.
        setting: values of settings that the cells have; empty for all.
    """

    paper: str
    table: str
    dataset: str
    seed: int = 0
    setting: dict[str, float] = field(default_factory=dict)

    def plan(self, scale: str) -> Plan:
        """Return the plan of these cells with this seed alone."""
        chosen = {"scale": scale, "seeds": [self.seed], "datasets": [self.dataset]}
        return Plan(load_config(overrides=chosen), self.paper)

    def cells(self, scale: str) -> list[Cell]:
        """Return the cells in the order of the table: all methods of a setting, then the next setting."""
        planned = self.plan(scale).cells(self.table)
        return [cell for cell in planned if self.setting.items() <= dict(cell.setting).items()]


ORDER = (
    Part("climb", "table2", "MNIST", setting={"alpha": 0}),  # what the paper's first claim is about
    *(Part("localscgdam", "table1", "FashionMNIST", seed) for seed in (0, 1, 2)),
    Part("climb", "table1", "MNIST"),
    # whether print with three minority classes is that of the program's classes
    Part("climb", "tableA4", "MNIST"),
    *(Part("climb", table, "MNIST", seed) for seed in (0, 1, 2) for table in ("table2", "table1")),
)


def missing(parts: tuple[Part, ...], scale: str) -> Iterator[tuple[Part, Cell]]:
    """Yield the cells whose run is not shipped, in the order of ``parts``, each once."""
    shipped = Path("reproduced") / scale
    done = {
        key for path in shipped.glob("*.csv") for key in pd.read_csv(path, usecols=["key"], dtype=str)["key"]
    }
    for part in parts:
        for cell in part.cells(scale):
            key = cell.runs[0].key
            if key not in done:
                done.add(key)
                yield part, cell


def call(arguments: list[str], end: float) -> None:
    """Run Python on ``arguments`` until ``end`` of the monotonic clock; then ask it to stop, which saves its state."""
    if (left := end - time.monotonic()) <= 0:
        return
    print("$", " ".join(arguments), flush=True)
    process = subprocess.Popen([sys.executable, *arguments])
    try:
        process.wait(left)
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAVED_WITHIN)
            return
        process.kill()


def compiles(device: str) -> bool:
    """Say whether steps can be compiled here: they take half the time on a CPU, three quarters on a GPU."""
    try:
        compiled.check(device)
    except UserError:
        return False
    return True


def command(part: Part, cell: Cell, options: argparse.Namespace) -> list[str]:
    """Return the arguments that train the run of a cell."""
    how = {
        "device": options.device, "seeds": [part.seed], "compile": str(compiles(options.device)).lower()
    }  # fmt: skip
    given = [word for name, value in how.items() for word in ("--set", f"{name}={value}")]
    return ["-m", "fedbench", "run", cell.name, "--scale", options.scale, *given]


def export(parts: list[Part], scale: str) -> None:
    """Add the runs that ended to the files under ``reproduced/`` and say how many rows these have."""
    for part in dict.fromkeys((part.paper, part.table, part.dataset, part.seed) for part in parts):
        plan, table = Part(*part).plan(scale), part[1]
        with contextlib.suppress(UserError):  # none of its runs ended
            paths = [export_reproduced(plan, table), *shipped_curves.add(plan, plan.cells(table))]
            print(f"{'/'.join(part[:2])}, {part[2]}, seed {part[3]}: in {' and '.join(map(str, paths))}")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--device", default="cpu", choices=["cuda", "cpu"])
    parser.add_argument("--jobs", type=int, help="runs at the same time; default: one a core, 8 on a GPU")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--checks", action="store_true", help="first the tests and benchmarks of a GPU")
    parser.add_argument("--archive", help="write all runs of the store to this file at the end")
    return parser.parse_args()


def main() -> None:
    """Run."""
    given = options()
    end = time.monotonic() + 3600 * given.hours
    for check in CHECKS if given.checks else ():
        call(check, end)
    todo, cores = list(missing(ORDER, given.scale)), os.cpu_count() or 1
    jobs = given.jobs or (min(SHARING, cores) if given.device == "cuda" else cores)
    if given.device == "cuda":
        os.environ.setdefault(gpus.VISIBLE, "0")  # named, it is shared
    print(f"{len(todo)} runs to train, {jobs} at a time, for {given.hours:g} hours", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda item: call(command(item[0], item[1], given), end), todo))
    export([part for part, _ in todo], given.scale)
    if given.archive:
        subprocess.run([sys.executable, "-m", "fedbench", "store", "export", given.archive], check=True)


if __name__ == "__main__":
    main()
