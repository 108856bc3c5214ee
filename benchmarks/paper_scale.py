"""Train runs at the papers' own scale for a given time, and add them to ``reproduced/paper``.

Runs that are shipped are left out, the others follow in :data:`ORDER`: one on each core, or :data:`SHARING` at a time
on a GPU. One that is in the store, imported from another machine, is taken from there. When the time is up, running
ones are stopped; they go on from their checkpoints with the next call.

    python benchmarks/paper_scale.py --hours 8                                    (or: make paper-scale HOURS=8)
    python benchmarks/paper_scale.py --hours 1 --device cuda --checks --archive gpu-runs.tar.gz   (or: make gpu)

With ``--archive`` the machine is taken for a lent one. The archive holds all runs of the store and is written anew
whenever one ends, so that whatever happens then, none that ended is lost. A run is begun only if the longest one of its
study so far (of all, if none ended) would still end, and checkpoints of unfinished ones lie beside the archive.
Elsewhere, ``fedbench store import gpu-runs.tar.gz`` adds the runs, ``tar xf unfinished.tar`` the checkpoints (which go
on with the same versions of PyTorch and NumPy), and this program with ``--hours 0`` writes what ended into
``reproduced/paper``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pandas as pd

from fedbench.engine import compiled
from fedbench.errors import UserError
from fedbench.results.export import add_curves, export_reproduced
from fedbench.spec import RunSpec
from fedbench.store import cell_files
from fedbench.store.exchange import export_runs
from fedbench.store.runs import STORE, Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.train import gpus

HERE = Path(__file__).parent
CHECKS = (
    ["-m", "pytest", "-q", str(HERE.parent / "tests/unit/engine/test_devices.py")],
    [str(HERE / "stacked.py"), "--device", "cuda"],
)
SHARING = 11
"""Runs that share a GPU, whose kernels are small: measured in benchmarks/README.md."""
SAVED_WITHIN = {"cpu": 120, "cuda": 15}
"""Seconds that a stopped run has to end its round and write its checkpoint."""
MPS = "nvidia-cuda-mps-control"


@dataclass(frozen=True)
class Part:
    """Cells of a table that are trained together.

    Attributes:
        paper: whose table it is.
        table: its name.
        dataset: the dataset whose cells are meant.
        seeds: the seeds.
        setting: values of settings that the cells have; empty for all.
    """

    paper: str
    table: str
    dataset: str
    seeds: tuple[int, ...] = (0, 1, 2)
    setting: dict[str, float] = field(default_factory=dict)

    def plan(self, scale: str) -> Plan:
        """Return the plan of these cells with these seeds."""
        chosen = {"scale": scale, "seeds": [*self.seeds], "datasets": [self.dataset]}
        return Plan(load_config(overrides=chosen), self.paper)

    def runs(self, scale: str) -> Iterator[tuple[Cell, RunSpec]]:
        """Yield the runs in the order of the table: all methods and seeds of a setting, then the next setting."""
        planned = self.plan(scale).cells(self.table)
        cells = [cell for cell in planned if self.setting.items() <= dict(cell.setting).items()]
        for _, row in groupby(cells, lambda cell: dict(cell.setting)):
            methods = [*row]
            for place in range(len(self.seeds)):
                yield from ((cell, cell.runs[place]) for cell in methods)


@dataclass(frozen=True)
class Job:
    """A run that is to be trained."""

    part: Part
    cell: Cell
    run: RunSpec

    def command(self, options: argparse.Namespace) -> list[str]:
        """Return the arguments of Python that train it."""
        compiling = str(compiles(options.device)).lower()
        given = {"device": options.device, "seeds": [self.run.seed], "compile": compiling}
        words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        return ["-m", "fedbench", "run", self.cell.name, "--scale", options.scale, *words]


ORDER = (
    Part("climb", "table1", "MNIST"),
    Part("climb", "table2", "MNIST"),
    # whether print with three minority classes is that of the program's classes
    Part("climb", "tableA4", "MNIST"),
    Part("localscgdam", "table1", "FashionMNIST"),
)


def missing(parts: tuple[Part, ...], scale: str) -> Iterator[Job]:
    """Yield the runs that are not shipped, in the order of ``parts``, each once."""
    shipped = Path("reproduced") / scale
    done = {
        key for path in shipped.glob("*.csv") for key in pd.read_csv(path, usecols=["key"], dtype=str)["key"]
    }
    for part in parts:
        for cell, run in part.runs(scale):
            if run.key not in done:
                done.add(run.key)
                yield Job(part, cell, run)


@functools.cache
def compiles(device: str) -> bool:
    """Say whether steps can be compiled here: they take half the time on a CPU, three quarters on a GPU."""
    try:
        compiled.check_compiler(True, device)
    except UserError:
        return False
    return True


class Lanes:
    """Runs of Python side by side until the time is up.

    Attributes:
        over: set when it is, or when this program is told to stop.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.over = threading.Event()
        self._options, self._end = options, time.monotonic() + 3600 * options.hours
        self._archive: Path | None = options.archive
        self._lock, self._longest = threading.Lock(), dict[str, float]()

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return 0.0 if self.over.is_set() else self._end - time.monotonic()

    def call(self, arguments: list[str]) -> None:
        """Run Python on ``arguments`` until the time is up; then ask it to stop, which saves its state."""
        if self.left <= 0:
            return
        print("$", " ".join(arguments), flush=True)
        process = subprocess.Popen([sys.executable, *arguments])
        while process.poll() is None and (left := self.left) > 0:
            self.over.wait(min(left, 0.5))
        process.terminate()
        try:
            process.wait(SAVED_WITHIN[self._options.device])
        except subprocess.TimeoutExpired:
            process.kill()

    def train(self, job: Job) -> None:
        """Train a run, and save it with all others that ended."""
        study = job.part.paper
        longest = self._longest.get(study, max(self._longest.values(), default=0))
        if self._archive and self.left < longest:
            return
        begun = time.monotonic()
        self.call(job.command(self._options))
        if self._archive and Store().has(job.run.key):
            with self._lock:
                self._longest[study] = max(self._longest.get(study, 0), time.monotonic() - begun)
                export_runs(Store(), Store().keys(), self._archive)
                print(f"{len(Store().keys())} runs in {self._archive}", flush=True)

    def save_unfinished(self) -> None:
        """Write the checkpoints of unfinished runs beside the archive, by their places in a project."""
        if self._archive:
            with tarfile.open(self._archive.with_name("unfinished.tar"), "w") as tar:
                for path in sorted(STORE.glob("*/checkpoint.pt")):
                    tar.add(path)


@contextlib.contextmanager
def shared(device: str) -> Iterator[None]:
    """Let processes share a GPU: it is named, so that none reserves it, and NVIDIA's MPS runs kernels side by side."""
    control = shutil.which(MPS) if device == "cuda" else None
    if device == "cuda":
        os.environ.setdefault(gpus.VISIBLE, "0")
    if control:
        subprocess.run([control, "-d"], check=False)
    try:
        yield
    finally:
        if control:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([control], input=b"quit", timeout=10, check=False)


def take_ended(cells: list[Cell]) -> None:
    """Write the results of cells with the runs that are in the store, imported ones too."""
    store = Store()
    for cell in cells:
        runs = [run for run in cell.runs if store.has(run.key)]
        records = [record for run in runs if (record := store.load(run.key)) is not None]
        if runs:
            cell_files.write_cell(cell.model_copy(update={"runs": runs}), records)


def export(parts: list[Part], scale: str) -> None:
    """Add the runs that ended to the files under ``reproduced/`` and say which they are in."""
    for part in {(part.paper, part.table, part.dataset): part for part in parts}.values():
        plan = part.plan(scale)
        take_ended(plan.cells(part.table))
        with contextlib.suppress(UserError):  # none of its runs ended
            paths = [
                export_reproduced(plan, part.table),
                *add_curves(plan, plan.cells(part.table)),
            ]
            print(f"{part.paper}/{part.table}, {part.dataset}: in {' and '.join(map(str, paths))}")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--device", default="cpu", choices=["cuda", "cpu"])
    parser.add_argument(
        "--jobs", type=int, help=f"runs at the same time; default: one a core, {SHARING} on a GPU"
    )
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--checks", action="store_true", help="first the tests and benchmarks of a GPU")
    parser.add_argument(
        "--archive", type=Path, help="write all runs of the store to this file whenever one ends"
    )
    return parser.parse_args()


def main() -> None:
    """Run."""
    given = options()
    lanes = Lanes(given)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: lanes.over.set())
    for check in CHECKS if given.checks else ():
        lanes.call(check)
    todo, cores = list(missing(ORDER, given.scale)), os.cpu_count() or 1
    jobs = given.jobs or (min(SHARING, cores) if given.device == "cuda" else cores)
    print(f"{len(todo)} runs to train, {jobs} at a time, for {given.hours:g} hours", flush=True)
    with shared(given.device), ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lanes.train, todo))
    lanes.save_unfinished()
    if not given.archive:
        export([job.part for job in todo], given.scale)


if __name__ == "__main__":
    main()
