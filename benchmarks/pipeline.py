"""What the pipeline costs besides training: planning, finding nothing to do, starting a job, running cells as jobs.

    python benchmarks/pipeline.py [dry-run] [no-op] [start] [overhead] [--seconds 20] [--cells 3]

Each line has processor seconds, which other work on the machine changes little, and seconds on the clock. The limits: a
dry run of all cells of all papers 5 s, a call with nothing to do 5 s, one train job until its first round is done 3 s,
and running cells of 20 s as jobs 15 % more than training them alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from fedbench.study import configuration

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PAPER = "localscgdam"

UNTIL_FIRST_ROUND = """
import os, sys
from fedbench.train import progress
progress.Reporter.__call__ = lambda *_: os._exit(0)
sys.argv = ["fedbench", "run", *sys.argv[1:]]
from fedbench.commands.cli import main
main()
"""


class Cost(NamedTuple):
    """Processor seconds of a command and its children, and seconds on the clock."""

    processor: float
    clock: float

    def __str__(self) -> str:
        return f"{self.processor:6.2f} s of processor, {self.clock:6.2f} s on the clock"


def cost(folder: Path, *command: str | Path) -> tuple[Cost, str]:
    """Run a command to its good end; return what it took and what it said."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begun
    said = done.stdout + done.stderr
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{said}")
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock), said


def dry_run(_: Path) -> None:
    """Plan every table and figure of every paper with the published protocol."""
    targets = []
    for key in configuration.paper_keys():
        paper = configuration.load_paper(key)
        targets += [f"tables/{key}/{name}.tex" for name in paper.tables]
        targets += [f"figures/{key}/{name}.pdf" for name in paper.figures]
    for seeds in ("0,1,2", "0,1,2,3,4,5"):
        options = ["-n", "-q", "rules", "--config", "scale=paper", f"seeds={seeds}"]
        spent, said = cost(ROOT, BIN / "snakemake", *targets, *options)
        jobs = next(int(line.split()[1]) for line in said.splitlines() if line.startswith("total "))
        print(f"dry run, {len(targets)} tables and figures, {jobs:4} jobs:  {spent}")


def project(folder: Path, iterations: int) -> Path:
    """Copy the project, with a scale ``bench``: the demo's cells with one seed and so many iterations."""
    folder.mkdir(exist_ok=True)
    for part in ("workflow", "config", "data_prep", "published"):
        shutil.copytree(ROOT / part, folder / part)
    train = {"epochs": None, "iterations": iterations, "evaluations": 15}
    plan = {PAPER: {"datasets": ["Digits"], "stand_in": "Digits", "train": train}}
    scale = {"description": "", "seeds": [0], "papers": plan}
    (folder / "config/scales/bench.yaml").write_text(yaml.safe_dump(scale))
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | {"scale": "bench", "device": "cpu"}
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    return folder


def no_op(folder: Path) -> None:
    """Ask for a table that is there already, with all the cells of the demo's."""
    project(folder, 16)
    built, _ = cost(folder, BIN / "snakemake", "tables/table1.tex")
    number = len(list(folder.glob("results/cells/**/*.json")))
    print(f"building a table of {number} cells, 16 iterations each:  {built}")
    spent, said = cost(folder, BIN / "snakemake", "tables/table1.tex")
    assert "Nothing to be done" in said, said
    print(f"nothing to do for that table:                    {spent}")


def names(folder: Path) -> list[str]:
    """The cells of the demo's Table 1, by name."""
    return [line.split()[0] for line in cost(folder, BIN / "fedbench", "list")[1].splitlines()]


def start(folder: Path) -> Cost:
    """Start a train job whose data are there, until its first round is done; median of five."""
    name = names(project(folder, 16))[0]
    cost(folder, BIN / "fedbench", "run", name)  # makes the data
    shutil.rmtree(folder / "results")
    spent = [cost(folder, sys.executable, "-c", UNTIL_FIRST_ROUND, name)[0] for _ in range(5)]
    median = Cost(*(statistics.median(values) for values in zip(*spent, strict=True)))
    torch = [cost(folder, sys.executable, "-c", "import torch")[0] for _ in range(3)]
    imported = Cost(*(statistics.median(values) for values in zip(*torch, strict=True)))
    print(f"a train job until its first round is done:       {median}")
    print(f"  `import torch` of that:                        {imported}")
    return median


def overhead(folder: Path, seconds: float, number: int) -> None:
    """Train cells of about ``seconds`` in one process, and as jobs of Snakemake one after another."""
    beginning, trial = start(folder / "start"), 1600
    some = names(project(folder / "trial", trial))[:number]
    tried = [cost(folder / "trial", BIN / "fedbench", "run", name)[0].processor for name in some]
    iterations = round(seconds / (statistics.mean(tried) - beginning.processor) * trial)
    both = project(folder / "both", iterations)
    paths = [f"results/cells/bench/{name}.json" for name in some]
    cost(both, BIN / "snakemake", *paths, "--until", "partition")  # the data, so that they are there for both
    alone = [cost(both, BIN / "fedbench", "run", name)[0] for name in some]
    bare = Cost(*(sum(one[n] for one in alone) - number * beginning[n] for n in range(2)))
    shutil.rmtree(both / "results")
    jobs, _ = cost(both, BIN / "snakemake", *paths, "--cores", "1")
    print(f"{number} cells of {iterations} iterations, training alone:     {bare}")
    print(f"  as jobs of one Snakemake:                      {jobs}")
    ratios = [f"{100 * (whole / part - 1):.0f} %" for whole, part in zip(jobs, bare, strict=True)]
    print(
        f"  more than training alone:                      {ratios[0]} of processor, {ratios[1]} on the clock"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {"dry-run": dry_run, "no-op": no_op, "start": start}
    parser.add_argument("parts", nargs="*", choices=[*parts, "overhead", []], default=[])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--cells", type=int, default=3)
    options = parser.parse_args(arguments)
    for part in options.parts or ["dry-run", "no-op", "overhead"]:
        with tempfile.TemporaryDirectory() as folder:
            if part == "overhead":
                overhead(Path(folder), options.seconds, options.cells)
            else:
                parts[part](Path(folder))


if __name__ == "__main__":
    main()
