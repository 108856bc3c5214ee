"""Clients stacked in one call against one client after the other, on any device: a round of CLIMB's MNIST cells.

100 clients x 600 samples, MLP 784-128-128-10, 5 local epochs of 5 batches each; the clock, not processor seconds, as a
graphics card works beside the processor. The last column is what 1000 such rounds, a cell at paper scale, would take.

    python benchmarks/stacked.py [--device cuda] [--chunks 1 10 100] [--rounds 3] [--graph]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from common import clients_like_mnist

from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.study.configuration import load_paper

CLIENTS, STEPS, ROUNDS_AT_PAPER_SCALE = 100, 25, 1000
CONFIG = Path(__file__).parents[1] / "config"


def spec() -> RunSpec:
    """Describe the workload as a run, with the paper's hyper-parameters."""
    method = load_paper("climb").methods["CLIMB"]
    return RunSpec(
        data=DataSpec(dataset="synthetic", clients=CLIENTS), seed=0, method=method.algorithm, params=method.params,
        network=NetworkSpec(name="mlp", options={"activation": "leaky_relu"}),
        train=TrainSpec(
            rounds=10**6, local_epochs=5, batches_per_epoch=5, weight_decay=1e-3, clip_norm=5.0, evaluations=1
        ),
    )  # fmt: skip


def seconds_a_round(simulation: Simulation, rounds: int) -> float:
    """Return the median over ``rounds`` after one to warm up."""
    times = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        simulation.train_round()
        if simulation.device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return sorted(times[1:])[rounds // 2]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunks", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--graph", action="store_true", help="record steps as CUDA graphs")
    options = parser.parse_args()
    arrays, alone = clients_like_mnist(CLIENTS, 600), None
    for chunk in options.chunks:
        how = Execution(chunk=chunk, compiling="graph" if options.graph else False)
        a_round = seconds_a_round(
            Simulation(spec(), arrays, torch.device(options.device), how), options.rounds
        )
        alone = a_round if alone is None else alone
        print(
            f"{chunk:4} stacked: {CLIENTS * STEPS / a_round:9.0f} steps/s, {alone / a_round:5.2f} times"
            f" {options.chunks[0]} stacked; {a_round * ROUNDS_AT_PAPER_SCALE / 60:6.1f} min for a cell at paper scale",
            flush=True,
        )


if __name__ == "__main__":
    main()
