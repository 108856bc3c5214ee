"""How many clients are computed in one call when nobody says: what pays, and the same result beyond rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from world import CPU, images, simulate, spec

from fedbench.engine.execution import Execution
from fedbench.engine.loop import AUTO, PLAIN, TINY, TOGETHER, choose_chunk_size
from fedbench.engine.simulate import Simulation


def chunk(
    network: str = "mlp", options: dict[str, Any] | None = None, compiling: bool = False,
    sizes: Sequence[int] = (20, 26, 31), **train: Any,
) -> Any:  # fmt: skip
    """What pays for a run, and how many parameters its network has."""
    run = spec("fedavg", network=network, options=options or {}, rounds=1, **train)
    simulation = Simulation(run, images(sizes, side=8), CPU)
    return choose_chunk_size(simulation.problem, simulation.data, compiling), simulation.problem.net.d


def test_small_plain_networks_are_stacked_on_a_cpu_and_others_are_not() -> None:
    few, d = chunk(options={"hidden": [64, 64]})
    assert TINY < d <= PLAIN and few == TOGETHER // d > 100
    more, d = chunk(options={"hidden": [400]})
    assert TINY < d <= PLAIN and 10 < more < few, "the more parameters, the fewer clients stay in the cache"
    large, d = chunk(options={"hidden": [600, 200]})
    assert d > PLAIN and large == 1
    first, d = chunk("cnn", {"channels": [16, 32], "kernel": 3, "padding": 1, "hidden": [64]})
    assert TINY < d <= PLAIN and first == 1, "convolutions of several networks are slower together"
    tiny, d = chunk(options={"hidden": [5]})
    assert d <= TINY and tiny is None


@pytest.mark.parametrize("batch", [{}, {"batch_size": None, "batches_per_epoch": 5}], ids=["size", "number"])
def test_clients_of_unequal_work_and_compiled_steps_are_not_stacked(batch: dict[str, Any]) -> None:
    epochs = {"options": {"hidden": [64, 64]}, "period": None, "local_epochs": 5, **batch}
    assert chunk(sizes=(40, 41, 44), **epochs)[0] > 100
    assert chunk(sizes=(20, 40, 90), **epochs)[0] == 1
    assert chunk(options={"hidden": [64, 64]}, compiling=True)[0] == 1


@pytest.mark.parametrize("method", ["fedavg", "coda_plus", "local_scgdam"])
def test_what_pays_gives_the_result_of_one_by_one(method: str) -> None:
    run = spec(method, network="mlp", options={"hidden": [64, 64]}, rounds=3)
    arrays = images(side=8)
    alone, _ = simulate(run, arrays)
    together = Simulation(run, arrays, CPU, Execution(chunk=AUTO))
    together.run()
    for name, tensor in alone.server.items():
        assert torch.allclose(tensor, together.server[name], atol=1e-5), name
