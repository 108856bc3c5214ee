"""The engine against a plain loop on the networks of the papers: 4 clients, batch 32, LocalSGDM, p = 8, one thread.

python benchmarks/networks.py [--repeats 5] [--steps 16] [NETWORK ...]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from common import clients_like_mnist, pairs
from torch import nn

from fedbench import models, registry
from fedbench.engine.simulate import Simulation
from fedbench.specs import DataSpec, NetworkSpec, RunSpec, TrainSpec

CLIENTS, PERIOD = 4, 8
CIFAR_CNN = {"channels": [64, 64], "hidden": [384, 192], "activation": "leaky_relu"}
CASES = {
    "fashion_cnn": ("cnn", {}, (1, 28, 28), 2),
    "cifar_cnn": ("cnn", CIFAR_CNN, (3, 32, 32), 10),
    "resnet20": ("resnet20", {}, (3, 32, 32), 2),
    "mlp": ("mlp", {}, (784,), 10),
}


def plain_loop(module: nn.Module, arrays, rounds: int, outputs: int):
    """Return LocalSGDM written by hand: a module, an optimizer with momentum, and averages of both every period."""
    x, y = torch.from_numpy(arrays.x_train), torch.from_numpy(arrays.y_train)
    loss = nn.BCEWithLogitsLoss() if outputs == 1 else nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    momenta = [torch.zeros_like(value) for value in module.parameters()]
    rng = np.random.default_rng(0)

    def run() -> None:
        nonlocal state, momenta
        for _ in range(rounds):
            ends, velocities = [], []
            for positions in arrays.clients:
                module.load_state_dict(state)
                for value, momentum in zip(module.parameters(), momenta, strict=True):
                    optimizer.state[value]["momentum_buffer"] = momentum.clone()
                order = torch.from_numpy(rng.permutation(positions)[: PERIOD * 32])
                for batch in order.split(32):
                    optimizer.zero_grad()
                    scores = module(x[batch])
                    target = y[batch]
                    (
                        loss(scores.squeeze(-1), target.float()) if outputs == 1 else loss(scores, target)
                    ).backward()
                    optimizer.step()
                ends.append({name: value.clone() for name, value in module.state_dict().items()})
                velocities.append(
                    [optimizer.state[value]["momentum_buffer"] for value in module.parameters()]
                )
            state = {name: sum(end[name] for end in ends) / CLIENTS for name in state}
            momenta = [sum(each) / CLIENTS for each in zip(*velocities, strict=True)]

    return run


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=list(CASES), choices=[*CASES, []])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16, help="local steps of each client per timed piece")
    options = parser.parse_args()
    for name in options.networks:
        network, settings, shape, classes = CASES[name]
        arrays = clients_like_mnist(CLIENTS, 512, shape, classes)
        rounds = options.steps // PERIOD
        spec = RunSpec(
            data=DataSpec(dataset="synthetic", clients=CLIENTS), seed=0, method="local_sgdm",
            params={"lr": 1e-3, "momentum": 0.9}, network=NetworkSpec(name=network, options=settings),
            train=TrainSpec(rounds=10**6, period=PERIOD, batch_size=32, evaluations=1),
        )  # fmt: skip
        simulation = Simulation(spec, arrays, torch.device("cpu"), 1)

        def engine(simulation=simulation, rounds=rounds) -> None:
            for _ in range(rounds):
                simulation.train_round()

        outputs = 1 if classes == 2 else classes
        module = registry.find(models, "network", network, "build")(shape, outputs, **settings)
        plain = plain_loop(module, arrays, rounds, outputs)
        engine(), plain()
        ours, theirs, ratio = pairs(engine, plain, options.repeats)
        each = 1e3 / (options.steps * CLIENTS)
        print(
            f"{name:12} engine {ours * each:7.2f} ms a step, plain loop {theirs * each:7.2f}; ratio {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
