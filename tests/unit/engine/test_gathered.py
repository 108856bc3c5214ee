"""What clients send that grows with their samples: which of it counts, how much the server may keep, and stops."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from world import CPU, images, interrupted, same, simulate, spec

from fedbench.algorithms import pairwise
from fedbench.engine.loop import _without_nan
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import RunSpec
from fedbench.store.runs import csv_text

SIZES = (20, 26, 31, 12, 9, 17)


def run_of() -> RunSpec:
    cyclic = {"rule": "cyclic", "clients": 2, "groups": 3}
    return spec("pairwise", clients=len(SIZES), rounds=None, cycles=3, participation=cyclic, evaluations=3)


@pytest.mark.parametrize("rounds", [{1, 2}, {4, 5, 9}])
def test_a_run_killed_in_mid_cycle_gives_the_same_bytes(
    rounds: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both pools filled: what is in use since the last cycle, what is collected in this one."""
    uninterrupted, expected = simulate(run_of(), images(SIZES))
    path, opened, prepare = tmp_path / "checkpoint.pt", list[int](), pairwise.Method.before_training
    monkeypatch.setattr(
        pairwise.Method, "before_training", lambda *given: opened.append(1) or prepare(*given)
    )
    resumed, outcome = interrupted(run_of(), images(SIZES), path, rounds)
    assert csv_text(outcome.curve) == csv_text(expected.curve)
    assert same(resumed.server, uninterrupted.server)
    assert len(opened) == (2 if 1 in rounds else 1)  # nothing was saved before round 1 had ended
    assert not path.with_name(path.name + ".unusable").exists()


def test_more_than_the_declared_memory_is_an_error_and_as_much_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared, simulation = [60], None
    while simulation is None:  # each time what the last one kept
        monkeypatch.setattr(pairwise.Method, "memory", declared[-1])
        try:
            simulation, _ = simulate(run_of(), images(SIZES))
        except UserError as error:
            said = re.search(r"keeps (\d+) floats .* more than the method's memory of (\d+)", str(error))
            assert said is not None and int(said[2]) == declared[-1] < int(said[1])
            declared.append(int(said[1]))
    pools = sum(tensor.numel() for name, tensor in simulation.server.items() if name != "x")
    assert 60 < declared[-1] < pools + simulation.problem.net.d, "the model is nothing that is gathered"


def test_an_entry_that_a_client_sends_is_there_if_any_of_its_numbers_is() -> None:
    sent = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan], [2.0, 3.0]])
    torch.testing.assert_close(_without_nan(sent), sent[[0, 2]], equal_nan=True)


def test_other_ids_draw_other_numbers() -> None:
    problem = Simulation(run_of(), images(SIZES), CPU).problem
    draws = [problem.stream("pick", *ids).integers(2**40) for ids in ((0, 0), (0, 1), (1, 0))]
    assert len(set(draws)) == 3 and draws[0] == problem.stream("pick", 0, 0).integers(2**40)
    assert draws[0] != replace(problem, seed=1).stream("pick", 0, 0).integers(2**40)
    assert problem.stream("batches", 0, 0).integers(2**40) != stream(0, "batches", 0, 0).integers(2**40)


@pytest.mark.parametrize("reference", [None, "local"])
def test_clients_are_measured_though_they_sent_fewer_scores_than_they_are(reference: str | None) -> None:
    arrays = images((40, 40, 40))
    arrays.y_train[:] = 0
    arrays.y_train[arrays.clients[0][0]] = 1
    _, outcome = simulate(spec("pairwise", clients=3, rounds=6, reference=reference), arrays)
    assert outcome.status == "finished"
