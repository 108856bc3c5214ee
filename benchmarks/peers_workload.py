"""The workload on which federated simulators were compared: engine against a tight hand-written loop.

100 clients x 600 samples of 784 floats, MLP 784-128-128-10, batch 32 (19 steps, the last of 24), 1 local epoch, 10
clients a round, SGD 0.1, no evaluation inside rounds; one thread, in one process, the two loops in turns.

    python benchmarks/peers_workload.py [--rounds 10] [--repeats 7] [--chunk 1] [--compile] [--cycles]
"""

from __future__ import annotations

import argparse

import torch
from common import clients_like_mnist, gemm_rate, pairs, seconds
from cycles import cycles
from torch import nn
from torch.nn.functional import cross_entropy

from fedbench.engine.execution import Execution
from fedbench.engine.schedule import participants
from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, ParticipationSpec, RunSpec, TrainSpec

PARTICIPATION = ParticipationSpec(rule="random", clients=10)
FLOP = 10 * 600 * 2 * (2 * 784 * 128 + 3 * 128 * 128 + 3 * 128 * 10)
"""Of a round's matrix products; the first layer needs no gradient of its inputs."""


def spec(rounds: int) -> RunSpec:
    """Describe the workload as a run."""
    return RunSpec(
        data=DataSpec(dataset="synthetic", clients=100), network=NetworkSpec(name="mlp"), method="fedavg",
        params={"lr": 0.1}, seed=0,
        train=TrainSpec(rounds=rounds, local_epochs=1, batch_size=32, participation=PARTICIPATION, evaluations=1),
    )  # fmt: skip


def hand_loop(arrays, rounds: int) -> list[torch.Tensor]:
    """Train as a good engineer writes it by hand: no optimizer, no state dicts, one call for all parameters."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    weights = list(model.parameters())
    x, y = torch.from_numpy(arrays.x_train), torch.from_numpy(arrays.y_train)
    for index in range(rounds):
        chosen = participants(PARTICIPATION, 100, index, 0)
        start = [value.detach().clone() for value in weights]
        total = [torch.zeros_like(value) for value in start]
        for client in chosen:
            with torch.no_grad():
                torch._foreach_copy_(weights, start)
            order = torch.randperm(600) + 600 * client
            for batch in order.split(32):
                loss = cross_entropy(model(x[batch]), y[batch])
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    torch._foreach_add_(weights, gradients, alpha=-0.1)
            with torch.no_grad():
                torch._foreach_add_(total, weights)
        with torch.no_grad():
            torch._foreach_copy_(weights, torch._foreach_div(total, len(chosen)))
    return weights


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--chunk", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="compile the engine's steps")
    parser.add_argument(
        "--cycles", action="store_true", help="count cycles, not seconds; print the ratio alone"
    )
    options = parser.parse_args()
    arrays = clients_like_mnist(100, 600)

    how = Execution(chunk=options.chunk, compiling=options.compile)
    simulation = Simulation(spec(10**6), arrays, torch.device("cpu"), how)

    def engine() -> None:
        for _ in range(options.rounds):
            simulation.train_round()

    hand_loop(arrays, 1)
    engine()
    measure = cycles if options.cycles else seconds
    ours, tight, ratio = pairs(engine, lambda: hand_loop(arrays, options.rounds), options.repeats, measure)
    if options.cycles:
        print(
            f"engine / tight loop {ratio:.2f} in cycles (median of pairs), {ours / tight:.2f} of the medians"
        )
        return
    rate = gemm_rate()
    per_round = 1e3 / options.rounds
    print(
        f"matrix products: {rate / 1e9:.0f} GFLOP/s on this core, so {FLOP / rate * 1e3:.1f} ms a round at least"
    )
    print(f"engine (client_chunk {options.chunk}): {ours * per_round:.1f} ms a round")
    print(
        f"  {190 * options.rounds / ours:.0f} steps/s, {FLOP * options.rounds / ours / rate:.0%} of the GEMM rate"
    )
    print(
        f"tight loop: {tight * per_round:.1f} ms a round; engine / tight loop {ratio:.2f} (median of pairs)"
    )


if __name__ == "__main__":
    main()
