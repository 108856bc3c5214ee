"""What the benchmarks share: synthetic data, timing of two loops side by side, printing."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from fedbench.data.clients import Arrays

torch.set_num_threads(1)


def clients_like_mnist(
    n_clients: int, per_client: int, shape: tuple[int, ...] = (784,), classes: int = 10
) -> Arrays:
    """Make float inputs of ``shape`` with Dirichlet(1) label skew; what they hold does not change a step's time."""
    rng = np.random.default_rng(0)
    n = n_clients * per_client
    centres = rng.standard_normal((classes, *shape), dtype=np.float32)
    labels = np.concatenate(
        [rng.choice(classes, per_client, p=rng.dirichlet(np.ones(classes))) for _ in range(n_clients)]
    )
    inputs = rng.standard_normal((n, *shape), dtype=np.float32)
    inputs += centres[labels]
    chunks = np.split(np.arange(n), n_clients)
    return Arrays(inputs, labels, inputs[:500], labels[:500], chunks, np.zeros(0, np.int64), classes)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call: other processes on a shared machine do not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def pairs(
    first: Callable[[], object],
    second: Callable[[], object],
    repeats: int,
    measure: Callable[[Callable[[], object]], float] = seconds,
) -> tuple[float, float, float]:
    """Time two loops in turns and return the medians of both and of their ratio first / second."""
    times = [(measure(first), measure(second)) for _ in range(repeats)]
    return (
        statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times),
        statistics.median(a / b for a, b in times),
    )


def gemm_rate(size: int = 1024) -> float:
    """Return this core's single-precision matrix product rate, FLOP per second."""
    matrix = torch.randn(size, size)
    product = lambda: matrix @ matrix  # noqa: E731
    product()
    return 2 * size**3 / min(seconds(product) for _ in range(5))
