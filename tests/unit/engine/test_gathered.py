"""A toy method with memory on the server, in this file alone: what is gathered, charged, drawn, kept and resumed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import world
from torch import Tensor
from world import CPU, images, saved, simulate, spec

from fedbench import registry
from fedbench.engine.loop import _without_nan
from fedbench.engine.outcome import Progress
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State
from fedbench.spec import RunSpec
from fedbench.store.runs import csv_text

SIZES = (20, 26, 31, 12, 9, 17)
CYCLIC = {"rule": "cyclic", "clients": 2, "groups": 3}
OPENED = 4
"""Samples a client scores before round 0."""


@dataclass(frozen=True)
class Memory(FederatedMethod):
    """FedAvg with a pull towards scores of positives that others sent in the cycle before."""

    lr: float
    gathered: ClassVar[tuple[str, ...]] = ("scores",)
    memory: ClassVar[int] = 500
    opened: ClassVar[list[int]] = []

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start without scores."""
        return {"x": w, "pool": w.new_empty(0), "next": w.new_empty(0)}

    def before_training(self, problem: Problem, server: State) -> State:
        """Fill the pool at the initial weights."""
        assert problem.draw is not None and problem.participants is not None
        self.opened.append(problem.cycle.round)
        scores = []
        for turn in range(problem.cycle.length):
            for client in problem.participants(turn):
                batch = problem.draw(client, OPENED, "open")
                scores.append(problem.scores(server["x"][None], batch, None)[0, :, 0])
                problem.charges.add(up=OPENED)
        return server | {"pool": torch.cat(scores)}

    def begin(self, problem: Problem, state: State) -> State:
        """Take one score of the pool, by a stream of the client's and the round's own."""
        ids = zip(state["client"].tolist(), state["round"].tolist(), state["pool"], strict=True)
        picked = [pool[problem.stream("pick", *at).integers(len(pool))] for *at, pool in ids]
        return state | {"picked": torch.stack(picked), "scores": state["pool"].new_empty(len(picked), 0)}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Step, and note the scores of the batch's positives."""
        batch, collected = batches[0], list[Tensor]()

        def loss(w: Any) -> Tensor:
            collected.append(problem.scores(w, batch, None)[..., 0])
            return (collected[-1].mean(1) - state["picked"]) ** 2 + problem.cross_entropy(w, batch, None)

        gradient, losses = problem.gradient(loss, state["x"])
        real = batch.labels == 1 if batch.weight is None else (batch.labels == 1) & (batch.weight > 0)
        scores = torch.where(real, collected[0].detach(), float("nan"))
        grown = torch.cat([state["scores"], scores], dim=1)
        return state | {"x": state["x"] - decay * self.lr * gradient, "loss": losses, "scores": grown}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average, and collect; at the end of a cycle what was collected comes into use."""
        server = super().server(problem, server, clients, participants, round_index)
        collected = torch.cat([server["next"], clients["scores"]])
        if not problem.cycle.ends:
            return server | {"next": collected}
        return server | {"pool": collected, "next": collected[:0]}


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer the toy as a package would."""
    entry = EntryPoint("memory", "test_gathered:Memory", "fedbench.algorithms")
    monkeypatch.setattr(registry, "_offered", lambda group: (entry,))
    monkeypatch.setitem(world.PARAMS, "memory", {"lr": 0.1})
    Memory.opened.clear()


def run_of(**train: Any) -> RunSpec:
    how = {"rounds": None, "cycles": 3, "participation": CYCLIC, "evaluations": 3, **train}
    return spec("memory", clients=len(SIZES), **how)


def positives_sent(simulation: Simulation, rounds: range) -> int:
    """Count by the plan alone how many positives the participants of some rounds saw."""
    data, total = simulation.data, 0
    assert simulation.problem.participants is not None
    for r in rounds:
        for client in simulation.problem.participants(r):
            for batch in data.plan(client, r):
                total += int((data.labels[torch.from_numpy(batch + data.offsets[client])] == 1).sum())
    return total


@pytest.mark.parametrize("train", [{}, {"period": None, "local_epochs": 2}], ids=["period", "local epochs"])
@pytest.mark.parametrize("chunk", [1, None])
def test_what_is_gathered_is_joined_and_counted_exactly(chunk: int | None, train: dict[str, Any]) -> None:
    """Of clients with unequal numbers of steps and of positives, one by one and stacked."""
    simulation, outcome = simulate(run_of(**train), images(SIZES), chunk)
    d, sent = simulation.problem.net.d, positives_sent(simulation, range(9))
    opening = 3 * 2 * OPENED
    up, down = outcome.curve[-1]["floats_up"], outcome.curve[-1]["floats_down"]
    assert up * 6 == pytest.approx(9 * 2 * d + sent + opening) and down * 6 == pytest.approx(9 * 2 * d)
    assert outcome.curve[0]["floats_up"] * 6 == opening
    assert len(simulation.server["pool"]) == positives_sent(simulation, range(6, 9)) > 0
    assert len(simulation.server["next"]) == 0 and bool(simulation.server["pool"].isfinite().all())
    assert [row["round"] for row in outcome.curve] == [0, 3, 6, 9]


def test_stacked_clients_send_the_same_in_the_same_order() -> None:
    first, many = (simulate(run_of(), images(SIZES), chunk)[0] for chunk in (1, None))
    torch.testing.assert_close(first.server["pool"], many.server["pool"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounds", [{1, 2}, {4, 5, 9}])
def test_a_run_killed_in_mid_cycle_gives_the_same_bytes(rounds: set[int], tmp_path: Path) -> None:
    """With both pools filled: what is in use since the last cycle, what is collected in this one."""
    uninterrupted, expected = simulate(run_of(), images(SIZES))
    path, left = tmp_path / "checkpoint.pt", set(rounds)
    Memory.opened.clear()

    def die(progress: Progress) -> None:
        if progress.round in left:
            left.remove(progress.round)
            raise InterruptedError

    while True:
        resumed = Simulation(run_of(), images(SIZES), CPU, saved(path, die))
        try:
            outcome = resumed.run()
            break
        except InterruptedError:
            continue
    assert csv_text(outcome.curve) == csv_text(expected.curve)
    assert torch.equal(resumed.server["pool"], uninterrupted.server["pool"])
    assert len(Memory.opened) == (2 if 1 in rounds else 1)  # nothing was saved before round 1 had ended
    assert not path.with_name(path.name + ".unusable").exists()


def test_more_than_the_declared_memory_is_an_error_and_as_much_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = [60]
    for _ in SIZES:  # each time what the last one kept
        monkeypatch.setattr(Memory, "memory", declared[-1])
        try:
            simulate(run_of(), images(SIZES))
            break
        except UserError as error:
            said = re.search(
                r"the server keeps (\d+) floats .* more than the method's memory of (\d+)", str(error)
            )
            assert said is not None and int(said[2]) == declared[-1]
            declared.append(int(said[1]))
    assert sorted({*declared}) == declared and len(declared) > 1


def test_an_entry_that_a_client_sends_is_there_if_any_of_its_numbers_is() -> None:
    sent = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan], [2.0, 3.0]])
    torch.testing.assert_close(_without_nan(sent), sent[[0, 2]], equal_nan=True)


def test_other_ids_draw_other_numbers() -> None:
    problem = simulate(run_of(), images(SIZES))[0].problem
    draws = [problem.stream("pick", *ids).integers(2**40) for ids in ((0, 0), (0, 1), (1, 0))]
    assert len(set(draws)) == 3 and draws[0] == problem.stream("pick", 0, 0).integers(2**40)
    assert draws[0] != replace(problem, seed=1).stream("pick", 0, 0).integers(2**40)
    assert problem.stream("batches", 0, 0).integers(2**40) != _engine_draw("batches")


def _engine_draw(purpose: str) -> int:
    from fedbench.random import stream

    return int(stream(0, purpose, 0, 0).integers(2**40))
