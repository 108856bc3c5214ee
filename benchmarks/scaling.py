"""How time and peak memory of a round grow with the number of clients N and of parameters d; all clients take part.

Each case runs in a process of its own, so that peaks do not mix.

    python benchmarks/scaling.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch
from common import clients_like_mnist

from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec

SAMPLES = 60_000
CASES = [(10, 128), (100, 128), (500, 128), (2000, 128), (100, 32), (100, 512)]


def case(n_clients: int, width: int, method: str, rounds: int) -> None:
    """Run one case and print its line."""
    arrays = clients_like_mnist(n_clients, SAMPLES // n_clients)
    params = {"fedavg": {"lr": 0.05}, "scaffold": {"lr": 0.05, "server_lr": 1.0}}[method]
    spec = RunSpec(
        data=DataSpec(dataset="synthetic", clients=n_clients), seed=0, method=method, params=params,
        network=NetworkSpec(name="mlp", options={"hidden": [width, width]}),
        train=TrainSpec(rounds=10**6, local_epochs=1, batches_per_epoch=5, evaluations=1),
    )  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    simulation = Simulation(spec, arrays, torch.device("cpu"))
    simulation.train_round()
    begun = time.process_time()
    for _ in range(rounds):
        simulation.train_round()
    a_round = (time.process_time() - begun) / rounds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    steps = 5 * n_clients
    print(f"{method:9} N {n_clients:5}  d {simulation.problem.net.d:7}  {a_round:6.2f} s a round", end="")
    print(f"  {a_round / steps * 1e3:5.2f} ms a step  peak {peak / 1024:6.0f} MB", end="")
    print(f", {(peak - before) / 1024:5.0f} MB of it above imports and data")


def main() -> None:
    """Run all cases, or with --case one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", nargs=3)
    options = parser.parse_args()
    if options.case:
        case(int(options.case[0]), int(options.case[1]), options.case[2], options.rounds)
        return
    for method in ("fedavg", "scaffold"):
        for n_clients, width in CASES:
            arguments = ["--rounds", str(options.rounds), "--case", str(n_clients), str(width), method]
            subprocess.run([sys.executable, __file__, *arguments], check=True)


if __name__ == "__main__":
    main()
