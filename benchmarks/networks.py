"""The engine against a plain PyTorch loop on the papers' networks: 4 clients, batch 32, p = 8, images channels last.

A step is forward, backward and update. All ways to train a network are timed in turns in one process: ``loop`` is the
plain loop, ``engine`` takes one client after the other, ``compiled`` so with compiled steps, ``graph`` with steps
recorded as CUDA graphs, ``stacked`` and ``stacked-graph`` all clients in one call. Processor seconds count, on a GPU
those of the clock.

    python benchmarks/networks.py [--ways loop engine] [--precision bf16] [--steps 16] [NETWORK ...]
    python benchmarks/networks.py --device cuda --ways loop engine graph stacked stacked-graph [--seconds 60]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from common import clients_like_mnist, seconds
from cycles import cycles
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fedbench import models, registry
from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec

CLIENTS, PERIOD, BATCH = 4, 8, 32
CIFAR_CNN = {"channels": [64, 64], "kernel": 5, "hidden": [384, 192], "activation": "leaky_relu"}
CASES = {
    "resnet20": ("resnet20", {}, (3, 32, 32), 2),
    "cifar_cnn": ("cnn", CIFAR_CNN, (3, 32, 32), 10),
    "resnet18": ("resnet18", {}, (3, 32, 32), 10),
    "densenet121": ("densenet121", {}, (3, 32, 32), 2),
    "fashion_cnn": ("cnn", {}, (1, 28, 28), 2),
    "mlp": ("mlp", {}, (784,), 10),
}
METHODS = {
    "local_sgdm": {"lr": 1e-3, "momentum": 0.9},
    "local_scgdam": {
        "lr": 1e-3, "lr_dual": 1e-3, "beta_x": 0.1, "beta_y": 0.1, "alpha_h": 0.9, "rho": 1e-3, "hvp": "exact",
        "score": "sigmoid", "dual_step": "batch",
    },
}  # fmt: skip
WAYS = {
    "engine": {"chunk": 1},
    "compiled": {"chunk": 1, "compiling": True},
    "graph": {"chunk": 1, "compiling": "graph"},
    "stacked": {"chunk": None},
    "stacked-graph": {"chunk": None, "compiling": "graph"},
}


def tight_loop(
    module: nn.Module, arrays: Arrays, rounds: int, outputs: int, device: torch.device, precision: str
) -> Callable[[], None]:
    """Return LocalSGDM as a good engineer writes it by hand: gradients asked for, one call for all parameters."""
    x, y = (torch.from_numpy(part).to(device) for part in (arrays.x_train, arrays.y_train))
    module = module.to(device)
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

    def rounding() -> contextlib.AbstractContextManager[object]:
        off = contextlib.nullcontext()
        return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else off

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
                order = torch.from_numpy(rng.permutation(positions)[: PERIOD * BATCH]).to(device)
                for batch in order.split(BATCH):
                    with torch.enable_grad():
                        with rounding():
                            scores = module(x[batch])
                        scores = scores.float()
                        error = loss(scores.squeeze(-1) if outputs == 1 else scores, target[batch])
                        gradients = torch.autograd.grad(error, weights)
                    step(velocities, gradients)
                torch._foreach_add_(sums, [*weights, *statistics, *velocities])
            torch._foreach_div_(sums, CLIENTS)
            kept, momenta = sums[: len(kept)], sums[len(kept) :]

    return run


def engine(
    network: str,
    settings: dict[str, object],
    arrays: Arrays,
    how: dict[str, object],
    options: argparse.Namespace,
) -> Callable[[], None]:
    """Return some rounds of the engine."""
    spec = RunSpec(
        data=DataSpec(dataset="synthetic", clients=CLIENTS), seed=0, method=options.method,
        params=METHODS[options.method], network=NetworkSpec(name=network, options=settings),
        train=TrainSpec(
            rounds=10**6, period=PERIOD, batch_size=BATCH, evaluations=1, precision=options.precision
        ),
    )  # fmt: skip
    simulation = Simulation(spec, arrays, torch.device(options.device), Execution(**how))

    def run() -> None:
        for _ in range(options.steps // PERIOD):
            simulation.train_round()

    return run


def clock(work: Callable[[], object]) -> float:
    """Return the seconds of one call on a GPU."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def contenders(name: str, options: argparse.Namespace) -> dict[str, Callable[[], None]]:
    """Return the ways to train a network, each called once before, by name."""
    network, settings, shape, classes = CASES[name]
    arrays = clients_like_mnist(CLIENTS, 512, shape, classes)
    ways = {}
    for way in options.ways:
        if way == "loop":
            outputs = 1 if classes == 2 else classes
            module = registry.find(models, "network", network, "build")(shape, outputs, **settings)
            device = torch.device(options.device)
            ways[way] = tight_loop(
                module, arrays, options.steps // PERIOD, outputs, device, options.precision
            )
        else:
            ways[way] = engine(network, settings, arrays, WAYS[way], options)
        try:
            ways[way]()
        except Exception as error:  # the others are measured all the same
            print(f"{name}: {way} fails: {error}", flush=True)
            del ways[way]
    return ways


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(CASES)}; all if none is named"
    )
    parser.add_argument("--ways", nargs="+", default=["loop", "engine"], choices=["loop", *WAYS])
    parser.add_argument("--method", default="local_sgdm", choices=METHODS, help="of the engine")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bf16"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no turn after these")
    parser.add_argument("--steps", type=int, default=16, help="local steps of each client per timed piece")
    parser.add_argument(
        "--cycles", action="store_true", help="count cycles (billions), not processor seconds"
    )
    return parser.parse_args()


def main() -> None:
    """Run and print."""
    options = arguments()
    end = time.monotonic() + options.seconds
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    measure = clock if options.device == "cuda" else cycles if options.cycles else seconds
    for name in options.networks or CASES:
        ways = contenders(name, options)
        times: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(options.repeats):
            if turn and time.monotonic() > end:
                break
            for way, run in ways.items():
                times[way].append(measure(run))
        first, steps = next(iter(times.values())), options.steps * CLIENTS
        print(f"{name}, {options.method}, {options.precision}, {len(first)} turns", flush=True)
        for way, taken in times.items():
            a_step = statistics.median(taken) / steps
            ratio = statistics.median(a / b for a, b in zip(first, taken, strict=True))
            rate = "" if options.cycles else f"{BATCH / a_step:10.0f} images/s "
            print(
                f"  {way:14}{1e3 * a_step:9.3f} a step {rate} {ratio:6.2f} times {options.ways[0]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
