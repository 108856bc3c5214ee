"""Steps that are traced, compiled, or recorded as CUDA graphs give what steps give, within rounding."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from world import CPU, METHODS, images, simulate, spec

from fedbench.algorithms import fedavg
from fedbench.engine import compiled, pooling, replay
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.problem import Batch
from fedbench.task import Conditional

SIZES = (12, 18, 24)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let the trace itself run in place of code compiled from it, which takes half a minute; the list counts them."""
    made: list[Any] = []

    def take(graph: Any, example: list[Tensor]) -> Any:
        made.append(graph)
        return graph

    monkeypatch.setattr(compiled, "machine_code", take)
    return made


@pytest.mark.usefixtures("norm")
@pytest.mark.parametrize(
    ("method", "chunk"), [(name, 1) for name in METHODS if name != "pairwise"] + [("fedavg", None)]
)
def test_a_trace_is_the_step(method: str, chunk: int | None, traced: list[Any]) -> None:
    """With momentum, variates, batch-norm and a step size that changes; every method but the one that gathers."""
    run, arrays = spec(method, rounds=3, decay_at=[0.6]), images(SIZES)
    plain, _ = simulate(run, arrays, chunk)
    quick, _ = simulate(run, arrays, chunk, compiling=True)
    assert quick.loop.compiled and len(traced) >= 2  # one for each step size
    torch.testing.assert_close(quick.server, plain.server, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert quick.record.ledger == plain.record.ledger


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_compiled_steps_give_the_same_within_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real compiler, on a network of one hidden layer."""
    monkeypatch.setenv(compiled.CACHE, str(tmp_path))
    monkeypatch.setattr(compiled, "_made", {})
    compiled.check_compiler(True, "cpu")
    run = spec("fedavg", rounds=3)
    plain, before = simulate(run, images(SIZES))
    quick, after = simulate(run, images(SIZES), compiling=True)
    assert quick.loop.compiled and list(tmp_path.rglob("*.so"))
    torch.testing.assert_close(quick.server["x"], plain.server["x"], rtol=1e-5, atol=1e-6)
    assert after.metrics["train_loss"] == pytest.approx(before.metrics["train_loss"], rel=1e-5)


def test_a_process_compiles_a_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that differ in their seed share it; another step size, constant or form of inputs is another step."""
    from torch.fx.experimental.proxy_tensor import make_fx

    asked: list[str] = []

    def inductor(graph: Any, example: list[Tensor], **_: Any) -> Any:
        asked.append(graph.code)
        return graph

    monkeypatch.setattr(torch._inductor, "compile", inductor)
    monkeypatch.setattr(compiled, "_made", {})
    for seed in (0, 1):
        simulate(spec("fedavg", seed=seed, rounds=3), images(SIZES), compiling=True)
    forms = len(asked)
    run, plain = (
        simulate(spec("fedavg", params={"lr": 0.07}), images(SIZES), compiling=c)[0] for c in (True, False)
    )
    assert len(asked) == 2 * forms
    torch.testing.assert_close(run.server["x"], plain.server["x"], rtol=1e-5, atol=1e-6)

    def scaled(by: Tensor, x: Tensor) -> Any:
        return compiled.machine_code(make_fx(lambda x: [x * by])(x), [x])(x)[0]

    x, two, three = torch.rand(3), torch.tensor([2.0]), torch.tensor([3.0])
    given = (two, x), (two.clone(), x), (three, x), (three, x.double()), (three, x[:2]), (three, x[::2])
    spread = (three.expand(3), x), (torch.arange(6.0)[::2], x)  # not in one piece
    for by, inputs in (*given, *spread):
        torch.testing.assert_close(scaled(by, inputs), by * inputs)
    assert len(asked) == 2 * forms + 7


def test_max_pooling_stays_with_the_library() -> None:
    """Its gradient too, with the same bits; anything else in a graph is left to the compiler."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def gradient(x: Tensor, weight: Tensor) -> Tensor:
        weight = weight.detach().requires_grad_()
        scores = F.max_pool2d(F.conv2d(x, weight), 2).relu().square().sum()
        return torch.autograd.grad(scores, weight)[0]

    given = torch.rand(4, 3, 12, 12).contiguous(memory_format=torch.channels_last), torch.rand(5, 3, 3, 3)
    graph = make_fx(gradient)(*given)
    pooling.keep(graph)
    called = [str(node.target) for node in graph.graph.nodes if "pool" in str(node.target)]
    assert called == ["fedbench.max_pool2d.default", "fedbench.max_pool2d_backward.default"]
    assert torch.equal(graph(*given), gradient(*given))


def test_the_first_round_is_told_apart(traced: list[Any]) -> None:
    told: dict[bool, list[Progress]] = {True: [], False: []}
    for compiling, seen in told.items():
        how = Execution(compiling=compiling, on_round=seen.append)
        Simulation(spec("fedavg", rounds=3), images(SIZES), CPU, how).run()
    for begun, *later in told.values():
        assert begun.first == begun.seconds > 0
        assert {progress.first for progress in later} == {begun.first}
    assert traced


def test_only_frequent_forms_are_compiled_wherever_a_run_begins(traced: list[Any]) -> None:
    """Clients of six sizes, whose last batches differ: the three most frequent forms, and the same after round 2."""
    run = spec("fedavg", clients=6, rounds=4, period=None, local_epochs=1)
    arrays = images((30, 31, 32, 33, 34, 35))
    begun = Simulation(run, arrays, CPU, Execution(compiling=True))
    begun.run()
    assert len(traced) == compiled.FORMS == 3
    late = Simulation(run, arrays, CPU, Execution(compiling=True))
    late.state.round = 2
    assert late.loop._compiled is not None and begun.loop._compiled is not None
    assert late.loop._compiled._forms == begun.loop._compiled._forms
    assert ((1, 6, 1, 6, 6), (1, 6), None) in {form[0] for form in begun.loop._compiled._forms}


def test_what_gathers_is_computed_as_it_is(traced: list[Any]) -> None:
    simulation, outcome = simulate(spec("pairwise"), images(SIZES), compiling=True)
    assert outcome.status == "finished" and not simulation.loop.compiled and not traced


def test_a_step_that_draws_is_computed_as_it_is(
    traced: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A trace would hold the first draw for ever."""
    step = fedavg.Method.step

    def noisy(self: Any, problem: Any, state: Any, batches: Any, decay: float) -> Any:
        noise = float(problem.stream("noise", int(state["round"])).normal())
        new = step(self, problem, state, batches, decay)
        return new | {"x": new["x"] + noise}

    monkeypatch.setattr(fedavg.Method, "step", noisy)
    plain, _ = simulate(spec("fedavg"), images(SIZES))
    with caplog.at_level(logging.WARNING):
        quick, _ = simulate(spec("fedavg"), images(SIZES), compiling=True)
    assert torch.equal(plain.server["x"], quick.server["x"]) and not quick.loop.compiled and not traced
    assert caplog.text.count("cannot be compiled") == 1


def test_nested_batches_are_taken_apart_and_put_together() -> None:
    nested = [Conditional(Batch(torch.zeros(1, 2), torch.ones(1)), Batch(torch.ones(1, 3), torch.zeros(1)))]
    assert compiled.form_of(nested) == ((((1, 2), (1,), None), ((1, 3), (1,), None)),)
    result = compiled._filled(nested, iter([tensor + 5 for tensor in compiled._tensors(nested)]))
    assert isinstance(result[0], Conditional) and result[0].inner.inputs.tolist() == [[6, 6, 6]]
    assert result[0].outer.weight is None


def test_batches_that_hide_their_tensors_are_not_traced(caplog: pytest.LogCaptureFixture) -> None:
    method = fedavg.Method(lr=0.1)
    assert not compiled.Compiled(method, [[SimpleNamespace(inputs=torch.zeros(2))]]).used
    assert "SimpleNamespace" in caplog.text
    assert compiled.Compiled(method, [[(torch.zeros(2), 3)]]).used


@pytest.mark.parametrize(("how", "lacks"), [(True, "compiler 'g\\+\\+'"), ("graph", "graph needs a GPU")])
def test_what_a_machine_lacks_is_named(how: Any, lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=lacks):
        compiled.check_compiler(how, "cpu")


def test_a_folder_that_the_user_chose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.CACHE, "elsewhere")
    compiled.keep_at(tmp_path)
    assert os.environ[compiled.CACHE] == "elsewhere"
    monkeypatch.delenv(compiled.CACHE)
    compiled.keep_at(tmp_path)
    assert os.environ[compiled.CACHE] == str(tmp_path)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record without a card; the list counts how often each recording runs again."""
    counts: list[int] = []

    def record(run: replay.Run, inputs: Sequence[Tensor]) -> tuple[Callable[[], None], Sequence[Tensor]]:
        if "bincount" in getattr(run, "code", ""):
            raise RuntimeError("CUDA records nothing that waits for the processor")
        outputs, number = run(*inputs), len(counts)
        counts.append(0)

        def again() -> None:
            counts[number] += 1
            for place, result in zip(outputs, run(*inputs), strict=True):
                place.copy_(result)

        return again, outputs

    monkeypatch.setattr(replay, "record", record)
    return counts


@pytest.mark.usefixtures("norm")
@pytest.mark.parametrize("train", [{}, {"period": None, "local_epochs": 1}])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pairwise"])
def test_what_is_recorded_is_the_step(method: str, train: dict[str, int | None], recorded: list[int]) -> None:
    """Bit for bit: running statistics change in place, and with local epochs clients that have finished stand still."""
    run, arrays = spec(method, rounds=3, **train), images(SIZES)
    plain, _ = simulate(run, arrays)
    quick, _ = simulate(run, arrays, compiling="graph")
    assert quick.loop.compiled and sum(recorded) > len(recorded)
    torch.testing.assert_close(quick.server, plain.server, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_clients_that_have_finished_stand_still_beside_others(recorded: list[int]) -> None:
    """Stacked, a step's results stand beside those of the step before, which must not be overwritten."""
    run, arrays = spec("local_sgdm", rounds=3, period=None, local_epochs=1), images(SIZES)
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
    """CUDA refuses an operation that waits for the processor while it records."""

    def refuse(run: replay.Run, inputs: Sequence[Tensor]) -> None:
        raise RuntimeError("Cannot copy between tensors during CUDA graph capture\nhow to debug it")

    monkeypatch.setattr(replay, "record", refuse)
    run, arrays = spec("fedlc"), images(SIZES)
    plain, _ = simulate(run, arrays)
    quick, outcome = simulate(run, arrays, compiling="graph")
    assert outcome.status == "finished" and not quick.loop.compiled
    assert torch.equal(quick.server["x"], plain.server["x"])
    assert caplog.text.count("during CUDA graph capture") == 1 and "how to debug" not in caplog.text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.usefixtures("norm")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pairwise"])
def test_a_card_replays_what_it_computes(method: str, chunk: int | None) -> None:
    run, arrays, card = spec(method, rounds=3), images((24, 24, 24)), torch.device("cuda")
    plain = Simulation(run, arrays, card, Execution(chunk=chunk))
    quick = Simulation(run, arrays, card, Execution(chunk=chunk, compiling="graph"))
    plain.run(), quick.run()
    assert quick.loop.compiled
    torch.testing.assert_close(quick.server, plain.server, rtol=1e-4, atol=1e-5, equal_nan=True)
