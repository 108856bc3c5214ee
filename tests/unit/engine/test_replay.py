"""Steps recorded as CUDA graphs; without a card a stand-in runs again what was recorded, in the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from world import METHODS, images, simulate, spec, tiny_norm

from fedbench.engine import replay
from fedbench.engine.execution import Execution
from fedbench.engine.simulate import Simulation
from fedbench.models import mlp

COUNTING = ("fedlc", "local_sgdm_cw")
"""Methods whose steps count the classes of a batch, for which CUDA waits for the processor."""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record without a card; the list counts how often each recording runs again."""
    counts: list[int] = []

    def record(run: replay.Run, inputs: Sequence[Tensor]) -> tuple[Callable[[], None], Sequence[Tensor]]:
        outputs, number = run(*inputs), len(counts)
        counts.append(0)

        def again() -> None:
            counts[number] += 1
            for place, result in zip(outputs, run(*inputs), strict=True):
                place.copy_(result)

        return again, outputs

    monkeypatch.setattr(replay, "record", record)
    return counts


@pytest.mark.parametrize("train", [{}, {"period": None, "local_epochs": 1}])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pairwise"])
def test_what_is_recorded_is_the_step(
    method: str, train: dict[str, int | None], recorded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: running statistics change in place, and with local epochs clients that have finished stand still."""
    monkeypatch.setattr(mlp, "build", lambda shape, outputs, **_: tiny_norm(shape, outputs))
    run, arrays = spec(method, rounds=3, **train), images((12, 18, 24))
    plain, _ = simulate(run, arrays)
    quick, _ = simulate(run, arrays, compiling="graph")
    assert quick.loop.compiled and sum(recorded) > len(recorded)
    assert plain.server.keys() == quick.server.keys()
    for name, tensor in plain.server.items():
        torch.testing.assert_close(quick.server[name], tensor, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_clients_that_have_finished_stand_still_beside_others(recorded: list[int]) -> None:
    """Stacked, a step's results stand beside those of the step before, which must not be overwritten."""
    run, arrays = spec("local_sgdm", rounds=3, period=None, local_epochs=1), images((12, 18, 24))
    plain, _ = simulate(run, arrays, None)
    quick, _ = simulate(run, arrays, None, compiling="graph")
    assert quick.loop.compiled and recorded
    torch.testing.assert_close(quick.server["x"], plain.server["x"], rtol=1e-5, atol=1e-6)


def test_results_are_kept_and_what_changes_in_place_is_the_callers(recorded: list[int]) -> None:
    def run(x: Tensor, total: Tensor) -> list[Tensor]:
        total.add_(x)
        return [2 * x]

    again = replay.Replay(run, [torch.ones(2), torch.zeros(2)], changed=[1])
    total = torch.zeros(2)
    first, second = (again(torch.full((2,), value), total)[0] for value in (1.0, 3.0))
    assert first.tolist() == [2, 2] and second.tolist() == [6, 6] and total.tolist() == [4, 4]
    assert recorded == [2]


def test_what_cannot_be_recorded_is_computed_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Counting the classes of a batch waits for the processor, which CUDA refuses while it records."""

    def refuse(run: replay.Run, inputs: Sequence[Tensor]) -> None:
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture\nhow to debug it"
        )

    monkeypatch.setattr(replay, "record", refuse)
    run, arrays = spec("fedlc"), images((12, 18, 24))
    plain, _ = simulate(run, arrays)
    quick, outcome = simulate(run, arrays, compiling="graph")
    assert outcome.status == "finished" and not quick.loop.compiled
    assert torch.equal(quick.server["x"], plain.server["x"])
    assert caplog.text.count("during CUDA graph capture") == 1 and "how to debug" not in caplog.text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pairwise"])
def test_a_card_replays_what_it_computes(
    method: str, chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlp, "build", lambda shape, outputs, **_: tiny_norm(shape, outputs))
    run, arrays, card = spec(method, rounds=3), images((24, 24, 24)), torch.device("cuda")
    plain = Simulation(run, arrays, card, Execution(chunk=chunk))
    quick = Simulation(run, arrays, card, Execution(chunk=chunk, compiling="graph"))
    plain.run(), quick.run()
    assert quick.loop.compiled == (method not in COUNTING)
    for name, tensor in plain.server.items():
        torch.testing.assert_close(quick.server[name], tensor, rtol=1e-4, atol=1e-5, equal_nan=True)
