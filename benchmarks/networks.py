"""The engine against a tight hand-written loop on the papers' networks: 4 clients, batch 32, LocalSGDM, p = 8.

python benchmarks/networks.py [--repeats 5] [--steps 16] [--compile] [--cycles] [NETWORK ...]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from common import clients_like_mnist, pairs, seconds
from cycles import cycles
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fedbench import models, registry
from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec

CLIENTS, PERIOD = 4, 8
CIFAR_CNN = {"channels": [64, 64], "hidden": [384, 192], "activation": "leaky_relu"}
CASES = {
    "fashion_cnn": ("cnn", {}, (1, 28, 28), 2),
    "cifar_cnn": ("cnn", CIFAR_CNN, (3, 32, 32), 10),
    "resnet20": ("resnet20", {}, (3, 32, 32), 2),
    "mlp": ("mlp", {}, (784,), 10),
}


def tight_loop(module: nn.Module, arrays, rounds: int, outputs: int):
    """Return LocalSGDM as a good engineer writes it by hand: gradients asked for, one call for all parameters.

    Images lie channels last, as in the engine.
    """
    x, y = torch.from_numpy(arrays.x_train), torch.from_numpy(arrays.y_train)
    if x.dim() == 4:
        module = module.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    weights = list(module.parameters())
    statistics = [value for value in module.buffers() if value.is_floating_point()]
    kept = [value.detach().clone() for value in (*weights, *statistics)]
    momenta = [torch.zeros_like(value) for value in weights]
    target = y.float() if outputs == 1 else y
    loss = binary_cross_entropy_with_logits if outputs == 1 else cross_entropy
    rng = np.random.default_rng(0)

    @torch.no_grad()
    def step(velocities: list[torch.Tensor], gradients: tuple[torch.Tensor, ...]) -> None:
        torch._foreach_mul_(velocities, 0.9)
        torch._foreach_add_(velocities, gradients)
        torch._foreach_add_(weights, velocities, alpha=-1e-3)

    @torch.no_grad()
    def run() -> None:
        nonlocal kept, momenta
        for _ in range(rounds):
            sums = [torch.zeros_like(value) for value in (*kept, *momenta)]
            for positions in arrays.clients:
                torch._foreach_copy_([*weights, *statistics], kept)
                velocities = [value.clone() for value in momenta]
                order = torch.from_numpy(rng.permutation(positions)[: PERIOD * 32])
                for batch in order.split(32):
                    with torch.enable_grad():
                        scores = module(x[batch])
                        error = loss(scores.squeeze(-1) if outputs == 1 else scores, target[batch])
                        gradients = torch.autograd.grad(error, weights)
                    step(velocities, gradients)
                torch._foreach_add_(sums, [*weights, *statistics, *velocities])
            torch._foreach_div_(sums, CLIENTS)
            kept, momenta = sums[: len(kept)], sums[len(kept) :]

    return run


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(CASES)}; all if none is named"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16, help="local steps of each client per timed piece")
    parser.add_argument("--compile", action="store_true", help="compile the engine's steps")
    parser.add_argument(
        "--cycles", action="store_true", help="count cycles (billions), not processor seconds"
    )
    options = parser.parse_args()
    measure, unit = (cycles, "Mcycles") if options.cycles else (seconds, "ms")
    for name in options.networks or CASES:
        network, settings, shape, classes = CASES[name]
        arrays = clients_like_mnist(CLIENTS, 512, shape, classes)
        rounds = options.steps // PERIOD
        spec = RunSpec(
            data=DataSpec(dataset="synthetic", clients=CLIENTS), seed=0, method="local_sgdm",
            params={"lr": 1e-3, "momentum": 0.9}, network=NetworkSpec(name=network, options=settings),
            train=TrainSpec(rounds=10**6, period=PERIOD, batch_size=32, evaluations=1),
        )  # fmt: skip
        simulation = Simulation(spec, arrays, torch.device("cpu"), Execution(compiling=options.compile))

        def engine(simulation=simulation, rounds=rounds) -> None:
            for _ in range(rounds):
                simulation.train_round()

        outputs = 1 if classes == 2 else classes
        module = registry.find(models, "network", network, "build")(shape, outputs, **settings)
        tight = tight_loop(module, arrays, rounds, outputs)
        engine(), tight()
        ours, theirs, ratio = pairs(engine, tight, options.repeats, measure)
        a_step = 1e3 / (options.steps * CLIENTS)
        print(
            f"{name:12} engine {ours * a_step:7.2f} {unit} a step, tight loop {theirs * a_step:7.2f};"
            f" ratio {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
