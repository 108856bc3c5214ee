"""Methods of cycp: their references under cyclic participation, special cases, the age of scores, what is sent."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_reference import compare
from world import CPU, images, same, simulate, spec

from fedbench.algorithms import a_scaffold, coda_plus, make, pairwise
from fedbench.contract.problem import Problem, State
from fedbench.data.clients import Arrays
from fedbench.engine.outcome import Progress
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.objectives.pairwise import PairLoss, active_passive
from fedbench.store.runs import csv_text

SIZES = (20, 26, 31, 12, 9, 17)
CYCLIC = {"rule": "cyclic", "clients": 2, "groups": 3}
EVERYBODY = {"rule": "cyclic", "clients": 3, "groups": 1}
RESNET = {"network": "resnet20", "options": {"blocks": 1}}
PAIRS = {"batch_size": 6, "positives": 2}


def cycles(n: int, **train: Any) -> dict[str, Any]:
    return {"rounds": None, "cycles": n, "participation": CYCLIC, "clients": len(SIZES), **train}


def lopsided() -> Arrays:
    """Six clients, the second without positives, the fifth without negatives."""
    arrays = images(SIZES, dtype=np.float64 if torch.get_default_dtype() == torch.float64 else np.float32)
    arrays.y_train[arrays.clients[1]], arrays.y_train[arrays.clients[4]] = 0, 1
    return arrays


# ---- references under cyclic participation --------------------------------------------------------------------------


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", ["fedavg", "a_fedavg", "a_scaffold", "coda_plus", "pairwise"])
def test_references_with_clients_in_cycles(
    monkeypatch: pytest.MonkeyPatch, method: str, chunk: int | None
) -> None:
    """Five rounds in cycles of five, then in cycles of one client twice over."""
    train = {"participation": {"rule": "cyclic", "clients": 1, "groups": 5}}
    rtol = 1e-9 if chunk == 1 else 1e-5  # shares of padded batches are kept in single precision
    compare(monkeypatch, method, False, chunk, 2, SIZES, train, rtol)
    train = {"participation": {"rule": "random", "clients": 4, "groups": 5}}
    compare(monkeypatch, method, False, chunk, 2, SIZES, train, rtol)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("params", [{"pool": "round"}, {"score": "logit"}, {"passive": 50}, {"opening": 1}])
def test_pairwise_with_batches_of_both_signs(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, Any], chunk: int | None
) -> None:
    train = {"participation": {"rule": "cyclic", "clients": 2, "groups": 1}, **PAIRS}
    compare(monkeypatch, "pairwise", False, chunk, 2, SIZES, train, 1e-9, **params)
    compare(monkeypatch, "pairwise", True, chunk, 2, SIZES, train, 1e-9, **params)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", ["pairwise", "a_scaffold", "coda_plus", "codasca"])
def test_clients_of_one_sign(monkeypatch: pytest.MonkeyPatch, method: str, chunk: int | None) -> None:
    import test_reference

    monkeypatch.setattr(test_reference, "images", lambda *args, **kwargs: lopsided())
    train = {"participation": {"rule": "random", "clients": 4, "groups": 5}}
    rtol = 1e-9 if chunk == 1 else 1e-5
    compare(monkeypatch, method, False, chunk, 2, SIZES, train | {"batch_size": 4}, rtol)
    if method == "pairwise":
        compare(monkeypatch, method, True, chunk, 2, SIZES, train | PAIRS, 1e-9)


# ---- amplified methods ----------------------------------------------------------------------------------------------


def test_without_amplification_it_is_fedavg_bit_for_bit() -> None:
    for how in ({}, RESNET):
        arrays = images(SIZES, side=8)
        one, first = simulate(spec("fedavg", **cycles(3), **how), arrays)
        other, second = simulate(spec("a_fedavg", {"kappa": 1.0}, **cycles(3), **how), arrays)
        assert same(one.server, {name: other.server[name] for name in one.server})
        assert csv_text(first.curve) == csv_text(second.curve)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("how", [{}, RESNET], ids=["mlp", "batch-norm"])
def test_a_window_ends_at_the_amplified_movement(how: dict[str, Any]) -> None:
    """x_0 + kappa (x - x_0); statistics of batch-norm are those without amplification."""
    arrays = images(SIZES, side=8, dtype=np.float64)
    plain, _ = simulate(spec("fedavg", **cycles(1, evaluations=1), **how), arrays)
    start = plain.problem.net.initial()
    for kappa in (1.5, 3.0):
        found, _ = simulate(spec("a_fedavg", {"kappa": kappa}, **cycles(1, evaluations=1), **how), arrays)
        torch.testing.assert_close(found.server["x"], start + kappa * (plain.server["x"] - start))
        assert not how or torch.equal(found.server["buffers"], plain.server["buffers"])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("how", [{}, RESNET], ids=["mlp", "batch-norm"])
def test_with_everybody_in_each_round_a_scaffold_is_scaffold(how: dict[str, Any]) -> None:
    arrays = images((20, 26, 31), side=8, dtype=np.float64)
    train = {"rounds": None, "cycles": 6, "participation": EVERYBODY, "decay_at": [0.5], **how}
    one, _ = simulate(spec("scaffold", {"server_lr": 1.0}, **train), arrays)
    other, _ = simulate(spec("a_scaffold", {"kappa": 1.0}, **train), arrays)
    for name in ("x", "c", *(["buffers"] if how else [])):
        torch.testing.assert_close(one.server[name], other.server[name], rtol=1e-10, atol=1e-12)
    assert float(one.server["c"].norm()) > 1e-2


@pytest.mark.usefixtures("double")
def test_before_the_first_renewal_a_scaffold_is_a_fedavg() -> None:
    arrays = images(SIZES, dtype=np.float64)
    for n, equal in ((1, True), (2, False)):
        one, other = (
            simulate(spec(method, **cycles(n, evaluations=1)), arrays)[0]
            for method in ("a_fedavg", "a_scaffold")
        )
        assert torch.allclose(one.server["x"], other.server["x"], rtol=1e-12, atol=1e-12) == equal


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("rule", ["cyclic", "random"])
def test_the_global_variate_is_the_mean_of_the_clients_after_each_window(rule: str) -> None:
    """Of all clients: with random draws some take part twice in a window, some not at all."""
    seen, repeats = [], 0

    def check(progress: Progress) -> None:
        nonlocal repeats
        own = simulation.own
        repeats = max(repeats, int(own["steps"].max()) // 4)
        if progress.round % 3:
            return
        renewed = (own["steps"] > 0)[:, None]  # gradients that are a client's variate from now on
        mean = torch.where(renewed, own["seen"], own["c_own"]).mean(0)
        torch.testing.assert_close(simulation.server["c"], mean, rtol=1e-10, atol=1e-13)
        seen.append(float(mean.norm()))

    participation = CYCLIC | {"rule": rule}
    run = spec("a_scaffold", **cycles(5, participation=participation))
    simulation = Simulation(run, images(SIZES, dtype=np.float64), CPU, on_round=check)
    simulation.run()
    assert len(seen) == 5 and min(seen) > 1e-2 and (repeats == 1) == (rule == "cyclic")


# ---- min-max --------------------------------------------------------------------------------------------------------


def test_one_group_of_everybody_is_coda_plus_bit_for_bit() -> None:
    """CyCp-Minimax with K = 1 and M = N."""
    stages = {"stages": {"first": 2, "factor": 0.5}, "evaluations": 2}
    train = {"rounds": None, "cycles": 6, "participation": EVERYBODY}
    one, _ = simulate(spec("coda_plus", **train, **stages), images())
    other, _ = simulate(spec("coda_plus", rounds=6, **stages), images())
    assert same(one.server, other.server)


def test_the_anchor_moves_at_stages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []
    new_stage = coda_plus.Method.new_stage

    def spy(self: Any, problem: Problem, server: State) -> State:
        moves.append(problem.cycle.round)
        return new_stage(self, problem, server)

    monkeypatch.setattr(coda_plus.Method, "new_stage", spy)
    simulate(spec("coda_plus", **cycles(7, stages={"first": 1, "scale": 2, "factor": 0.5})), images(SIZES))
    assert moves == [3, 9]


# ---- pairs ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "name", ["square", "squared_hinge", "logistic", "sigmoid", "barrier_hinge", "q_norm_hinge"]
)
def test_with_its_own_current_scores_the_gradient_is_that_of_all_pairs(name: str) -> None:
    """cycp eq. (9): two clients of equal counts whose passive scores are everybody's current ones."""
    psi = PairLoss(name, margin=1.0, temperature=0.3, slope=10.0, q=3.0)
    rng = torch.Generator().manual_seed(0)
    x, w = torch.randn(2, 9, 3, generator=rng), torch.randn(3, generator=rng)
    y = torch.tensor([[1, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0, 0, 0, 1]])
    whole = w.clone().requires_grad_()
    s = torch.sigmoid(x @ whole)
    objective = psi(s[y == 1][:, None] - s[y == 0][None]).value.mean()
    (expected,) = torch.autograd.grad(objective, whole)
    mine = w.clone().requires_grad_()
    s = torch.sigmoid(x @ mine)
    now = s.detach()
    pools = [now[y == label].expand(2, -1) for label in (1, 0)]
    pairs = active_passive(now, y, torch.ones_like(y, dtype=torch.bool), *pools, psi)
    (found,) = torch.autograd.grad((pairs.slope * s).sum(1).mean(), mine)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(pairs.loss.mean(), 2 * objective.detach())  # each pair once from either side


@pytest.mark.usefixtures("double")
def test_padding_and_missing_signs_have_no_say() -> None:
    psi = PairLoss("sigmoid", 1.0, 0.3, 10.0, 3.0)
    scores = torch.tensor([[0.1, 0.7, 0.4, 0.9], [0.3, 0.2, 0.8, 0.6]])
    labels = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0]])
    valid = torch.tensor([[True, True, True, False], [True, True, True, True]])
    positives, negatives = torch.rand(2, 5), torch.rand(2, 3)
    whole = active_passive(scores, labels, valid, positives, negatives, psi)
    alone = active_passive(scores[:1, :3], labels[:1, :3], valid[:1, :3], positives[:1], negatives[:1], psi)
    torch.testing.assert_close(whole.loss[:1], alone.loss)
    torch.testing.assert_close(whole.slope[:1, :3], alone.slope)
    assert whole.slope[0, 3] == 0
    nothing = active_passive(scores, labels, valid, positives[:, :0], negatives, psi)
    assert nothing.loss[1] == 0 and (nothing.slope[1] == 0).all() and nothing.loss[0] > 0
    assert (whole.slope[1] > 0).all() and (whole.slope[0, 0] < 0)  # negatives down, positives up


@pytest.mark.parametrize("pool", ["cycle", "round"])
def test_passive_scores_are_exactly_those_of_the_cycle_or_round_before(
    monkeypatch: pytest.MonkeyPatch, pool: str
) -> None:
    log: list[State] = []

    def end(self: Any, problem: Problem, state: State) -> State:
        log.append(state)
        return state

    monkeypatch.setattr(pairwise.Method, "end", end)
    run = spec("pairwise", {"pool": pool, "passive": 1000}, **cycles(4), **PAIRS)
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


def test_what_is_sent_and_received_is_counted() -> None:
    run = spec("pairwise", {"passive": 3, "opening": 8}, **cycles(3, evaluations=3), **PAIRS)
    simulation, outcome = simulate(run, images(SIZES))
    d, data, n = simulation.problem.net.d, simulation.data, len(SIZES)
    assert simulation.problem.participants is not None
    up, down = 6 * 8, 6 * d  # the opening: eight scores of everybody, who got the initial model
    assert outcome.curve[0]["floats_up"] * n == up and outcome.curve[0]["floats_down"] * n == down
    for r in range(9):
        row = outcome.curve[r // 3]
        pools = [row["pool_positives"], row["pool_negatives"]]
        for client in simulation.problem.participants(r):
            up += d + 4 * sum(data.pairs.counts(client)) if data.pairs else 0
            down += d + sum(min(12, size) for size in pools)
    assert outcome.curve[-1]["floats_up"] * n == pytest.approx(up)
    assert outcome.curve[-1]["floats_down"] * n == pytest.approx(down)


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
    for round_index in range(3):
        server = method.server(problem, server, sent, [0], round_index)
        assert server["pool_positives"].tolist() == pytest.approx([0.5, 0.6])
        assert server["pool_negatives"].tolist() == pytest.approx([0.2, 0.3])
        assert not len(server["next_negatives"])
    assert method.report(server)["pools_kept"] == 3
    assert len(caplog.records) == 1 and "nobody sent a score of positives up to round 0" in caplog.text


@pytest.mark.parametrize("method", ["pairwise", "a_scaffold", "a_fedavg", "coda_plus"])
@pytest.mark.parametrize("at", [4, 5])
def test_killed_in_mid_cycle_it_gives_the_same_bytes(method: str, at: int, tmp_path: Path) -> None:
    """Both pools filled: what is in use, and what the running cycle has collected; variates half renewed."""
    run = spec(method, **cycles(3), **PAIRS)
    whole, expected = simulate(run, images(SIZES))
    path, alive = tmp_path / "checkpoint.pt", [True]

    def die(progress: Progress) -> None:
        if progress.round == at and alive.pop():
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Simulation(run, images(SIZES), CPU, 1, path, 0, die).run()
    assert path.exists()
    resumed = Simulation(run, images(SIZES), CPU, 1, path, 0)
    outcome = resumed.run()
    assert csv_text(outcome.curve) == csv_text(expected.curve)
    assert same(resumed.server, whole.server) and same(resumed.own, whole.own)


def test_two_hundred_clients_fit_the_declared_memory() -> None:
    """Paper scale: 20 groups of 10 in every round, 32 steps of 16 and 16 scores."""
    kept = 2 * 2 * 20 * 10 * 32 * 16  # two signs, the pool in use and the one that is collected
    assert kept <= pairwise.Method.memory


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("a_fedavg", {"kappa": 0.9}, "'a_fedavg': kappa is 0.9, but has to be 1"),
        ("a_scaffold", {"kappa": 0.0}, "'a_scaffold': kappa is 0.0"),
        ("a_fedavg", {"lr": 0.0}, "lr has to be above 0"),
        ("pairwise", {"temperature": 0.0}, "temperature is 0.0, but has to be above 0"),
        ("pairwise", {"loss": "sigmoide"}, "Did you mean 'sigmoid'"),
        ("pairwise", {"q": 1.0}, "q is 1.0, but has to be above 1"),
        ("pairwise", {"slope": 0.0}, "slope is 0.0, but has to be above 0"),
        ("pairwise", {"passive": 0}, "passive has to be above 0"),
        ("pairwise", {"pool": "epoch"}, "unknown pool 'epoch'"),
        ("pairwise", {"score": "softmax"}, "unknown score"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(method: str, params: dict[str, Any], message: str) -> None:
    from world import PARAMS

    with pytest.raises(UserError, match=message):
        make(method, PARAMS[method] | params)


def test_a_scaffold_keeps_two_vectors_a_client() -> None:
    own = dict.fromkeys(a_scaffold.Method.own, 0)
    simulation, _ = simulate(spec("a_scaffold", **cycles(1, evaluations=1)), images(SIZES))
    d = simulation.problem.net.d
    sizes = [tensor.numel() for name, tensor in simulation.own.items() if name in own]
    assert sum(size >= len(SIZES) * d for size in sizes) == 2
