"""What to do with a graphics card for a given time: tests, benchmarks, then as many numbers of CLIMB's Table 2 as fit.

The cells of MNIST at paper scale are trained seed by seed, those with the least work first. When the time is up, the
run that is being trained is stopped (its checkpoint stays), and all finished ones are written to one archive.

    python benchmarks/gpu.py --minutes 60 [--archive gpu-runs.tar.gz]      (or: make gpu MINUTES=60)
    then, elsewhere: fedbench store import gpu-runs.tar.gz
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from pathlib import Path

from fedbench.plan.cells import Cell, cells_of
from fedbench.plan.configuration import load_config

HERE = Path(__file__).parent
CHECKS = (
    ["-m", "pytest", "-q", str(HERE.parent / "tests/unit/engine/test_devices.py")],
    [str(HERE / "stacked.py"), "--device", "{device}"],
    [str(HERE / "networks.py")],
)


def work(cell: Cell) -> float:
    """Return how many clients train in a run of a cell, over all rounds, weighted by the batches a step needs."""
    run = cell.runs[0]
    a_round = run.train.participation.clients or run.data.clients
    twice = 2.0 if "climb" in run.method or "ratio" in run.method else 1.0
    return float((run.train.rounds or 1) * a_round * (run.train.local_epochs or 1)) * twice


def call(arguments: list[str], left: float) -> None:
    """Run Python on ``arguments`` for at most ``left`` seconds; then ask it to stop, as fedbench does with a save."""
    print("$", " ".join(arguments), flush=True)
    process = subprocess.Popen([sys.executable, *arguments])
    try:
        process.wait(max(left, 0))
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(120)
            return
        process.kill()


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--archive", default="gpu-runs.tar.gz")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--dataset", default="MNIST")
    parser.add_argument("--no-checks", action="store_true", help="train only")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    config = load_config(overrides={"scale": options.scale})
    cells = [cell for cell in cells_of(config, "climb", "table2") if cell.dataset == options.dataset]
    if not cells:
        parser.error(f"climb's table2 has no {options.dataset} at scale {options.scale}")
    for check in () if options.no_checks else CHECKS:
        call([part.format(device=options.device) for part in check], end - time.monotonic())
    seeds = [run.seed for run in cells[0].runs]
    for seed in seeds:
        for cell in sorted(cells, key=work):
            if (left := end - time.monotonic()) <= 0:
                break
            how = [f"device={options.device}", f"seeds={[seed]}"]
            given = [part for setting in how for part in ("--set", setting)]
            call(["-m", "fedbench", "run", cell.name, "--scale", options.scale, *given], left)
    subprocess.run([sys.executable, "-m", "fedbench", "store", "export", options.archive], check=True)


if __name__ == "__main__":
    main()
