"""The method on pairs of scores, whose pools the server keeps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from cycles import PAIRS, SIZES, cycles
from world import CPU, images, simulate, spec

from fedbench.algorithms import pairwise
from fedbench.engine.simulate import Simulation
from fedbench.objectives.pairwise import LOSSES, PairLoss, active_passive
from fedbench.problem import State


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", LOSSES)
def test_with_its_own_current_scores_the_gradient_is_that_of_all_pairs(name: str) -> None:
    """cycp eq. (9): two clients of equal counts whose passive scores are everybody's current ones."""
    psi = PairLoss(name, margin=1.0, temperature=0.3, slope=10.0, q=3.0)
    rng = torch.Generator().manual_seed(0)
    x, w = torch.randn(2, 9, 3, generator=rng), torch.randn(3, generator=rng)
    y = torch.tensor([[1, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0, 0, 0, 1]])
    full = w.clone().requires_grad_()
    s = torch.sigmoid(x @ full)
    objective = psi(s[y == 1][:, None] - s[y == 0][None]).value.mean()
    (expected,) = torch.autograd.grad(objective, full)
    mine = w.clone().requires_grad_()
    s = torch.sigmoid(x @ mine)
    now = s.detach()
    pools = [now[y == label].expand(2, -1) for label in (1, 0)]
    pairs = active_passive(now, y, torch.ones_like(y, dtype=torch.bool), *pools, psi)
    (gradient,) = torch.autograd.grad((pairs.slope * s).sum(1).mean(), mine)
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(pairs.loss.mean(), 2 * objective.detach())  # each pair once from either side


@pytest.mark.usefixtures("double")
def test_padding_and_missing_signs_have_no_say() -> None:
    psi = PairLoss("sigmoid", 1.0, 0.3, 10.0, 3.0)
    scores = torch.tensor([[0.1, 0.7, 0.4, 0.9], [0.3, 0.2, 0.8, 0.6]])
    labels = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0]])
    valid = torch.tensor([[True, True, True, False], [True, True, True, True]])
    positives, negatives = torch.rand(2, 5), torch.rand(2, 3)
    full = active_passive(scores, labels, valid, positives, negatives, psi)
    alone = active_passive(scores[:1, :3], labels[:1, :3], valid[:1, :3], positives[:1], negatives[:1], psi)
    torch.testing.assert_close(full.loss[:1], alone.loss)
    torch.testing.assert_close(full.slope[:1, :3], alone.slope)
    assert full.slope[0, 3] == 0
    nothing = active_passive(scores, labels, valid, positives[:, :0], negatives, psi)
    assert nothing.loss[1] == 0 and (nothing.slope[1] == 0).all() and nothing.loss[0] > 0
    assert (full.slope[1] > 0).all() and (full.slope[0, 0] < 0)  # negatives down, positives up


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """The states of clients at the ends of their rounds."""
    states: list[State] = []
    monkeypatch.setattr(pairwise.Method, "end", lambda self, problem, state: states.append(state) or state)
    return states


@pytest.mark.parametrize("pool", ["cycle", "round"])
def test_passive_scores_are_exactly_those_of_the_cycle_or_round_before(log: list[State], pool: str) -> None:
    run = spec("pairwise", {"pool": pool, "passive": 1000, "share": "count"}, **cycles(4), **PAIRS)
    simulate(run, images(SIZES))
    length = 3 if pool == "cycle" else 1
    epochs = itertools.groupby(log, key=lambda state: int(state["round"][0]) // length)
    states = [list(entries) for _, entries in epochs]
    assert len(states) == 12 // length
    for before, now in itertools.pairwise(states):
        for sign in pairwise.SIGNS:
            sent = torch.cat([state[sign][0] for state in before])
            sent = sent[~sent.isnan()].sort().values
            for state in now:
                assert torch.equal(state[f"passive_{sign}"][0].sort().values, sent)
    first = torch.cat([states[0][0][f"passive_{sign}"][0] for sign in pairwise.SIGNS])
    assert len(first) in ((59,) if pool == "cycle" else (19, 20))  # of 10 samples a client; one client has 9


@pytest.mark.parametrize("share", ["client", "count"])
@pytest.mark.parametrize("pool", ["cycle", "round"])
def test_passive_scores_weigh_by_client_as_active_ones_do(log: list[State], pool: str, share: str) -> None:
    """Clients of 0, 1, 2, ... positives: a pool's mean is the mean over clients of their own means (or that of all)."""
    arrays = images(SIZES)
    for client, positions in enumerate(arrays.clients):
        arrays.y_train[positions] = np.arange(len(positions)) < client  # the first has none
    run = spec("pairwise", {"pool": pool, "passive": 1000, "share": share}, **cycles(2), **PAIRS)
    simulate(run, arrays)
    length = 3 if pool == "cycle" else 1
    for at in range(length, 6):
        first = (at // length - 1) * length
        before = [state for state in log if first <= int(state["round"][0]) < first + length]
        now = next(state for state in log if int(state["round"][0]) == at)
        for sign in pairwise.SIGNS:
            sent = [state[sign][0][~state[sign][0].isnan()].double() for state in before]
            sent = [own for own in sent if len(own)]
            received = now[f"passive_{sign}"][0].double()
            by_client = torch.stack([own.mean() for own in sent]).mean()
            by_count = torch.cat(sent).mean()
            assert abs(by_client - by_count) > 1e-4 or len({*map(len, sent)}) == 1
            # a score is repeated once more or less than another of its client: that is all that is left
            shares = torch.stack([torch.isin(received, own).sum() for own in sent]).double()
            assert torch.equal(shares, shares[:1].expand_as(shares)) == (
                share == "client" or len({*map(len, sent)}) == 1
            )
            close = by_client if share == "client" else by_count
            torch.testing.assert_close(received.mean(), close, rtol=0, atol=2e-3)


def test_levelled_parts_are_as_long_and_each_entry_comes_evenly_often() -> None:
    parts = [torch.arange(float(n)) for n in (3, 0, 7, 1)]
    result = pairwise.levelled(parts)
    assert [len(part) for part in result] == [7, 7, 7]
    assert [torch.bincount(part.long()).tolist() for part in result] == [[3, 2, 2], [1] * 7, [7]]
    assert all(not len(part) for part in pairwise.levelled(parts[1:2]))


def test_no_passive_score_is_used_twice_while_others_are_left() -> None:
    run = spec("pairwise", {"passive": 3}, **cycles(2), **PAIRS)
    simulation, _ = simulate(run, images(SIZES))
    method, problem = simulation.method, simulation.problem
    assert isinstance(method, pairwise.Method)
    for size, uses in ((40, [1] * 12 + [0] * 28), (12, [1] * 12), (7, [2] * 5 + [1] * 2)):
        pool = torch.arange(float(size))
        state = {"client": torch.tensor([4]), "round": torch.tensor([2]), "pool_positives": pool[None]}
        state["passive_positives"] = method._received(problem, state, "positives")
        turns = [method._turn(state | {"made": torch.tensor([step])}, "positives") for step in range(4)]
        counts = np.bincount(torch.cat(turns, 1)[0].long().numpy(), minlength=size)
        assert sorted(counts.tolist(), reverse=True) == uses
        other = state | {"client": torch.tensor([5])}
        assert size < 12 or not torch.equal(
            method._received(problem, other, "positives"), state["passive_positives"]
        )


def test_a_world_without_positives_trains_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    arrays = images(SIZES)
    arrays.y_train[np.concatenate(arrays.clients)] = 0
    simulation, outcome = simulate(spec("pairwise", **cycles(2)), arrays)
    assert outcome.status == "finished" and "no positives among the 10 samples" in caplog.text
    assert torch.equal(simulation.server["x"], simulation.problem.net.initial())
    assert outcome.metrics["pool_positives"] == 0 < outcome.metrics["pool_negatives"]


def test_a_pool_that_would_become_empty_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation(spec("pairwise", {"pool": "round"}, rounds=4), images(), CPU)
    method, problem = simulation.method, simulation.problem
    pools = {"pool_positives": torch.tensor([0.5, 0.6]), "pool_negatives": torch.tensor([0.1])}
    server = simulation.server | pools
    sent = {"x": server["x"][None], "positives": torch.empty(0), "negatives": torch.tensor([0.2, 0.3])}
    sent |= {"positives_counts": torch.tensor([0]), "negatives_counts": torch.tensor([2])}
    for round_index in range(3):
        server = method.server(problem, server, sent, [0], round_index)
        assert server["pool_positives"].tolist() == pytest.approx([0.5, 0.6])
        assert server["pool_negatives"].tolist() == pytest.approx([0.2, 0.3])
        assert not len(server["next_negatives"])
    assert method.report(server)["pools_kept"] == 3
    assert len(caplog.records) == 1 and "no client sent a score of positives up to round 0" in caplog.text


def test_two_hundred_clients_fit_the_declared_memory() -> None:
    """Paper scale: 20 groups of 10 in every round, 32 steps of 16 and 16 scores."""
    kept = 2 * 2 * 20 * 10 * 32 * 16  # two signs, the pool in use and the one that is collected
    assert kept <= pairwise.Method.memory
