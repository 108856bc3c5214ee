"""Methods of cycp: their references under cyclic participation, special cases, the age of scores, what is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_reference
import torch
from cycles import CYCLIC, PAIRS, SIZES, cycles
from test_reference import compare
from world import CPU, images, same, saved, simulate, spec

from fedbench.algorithms import a_scaffold, coda_plus, make_method
from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.problem import Problem, State
from fedbench.store.runs import csv_text

EVERYBODY = {"rule": "cyclic", "clients": 3, "groups": 1}
RESNET = {"network": "resnet20", "options": {"blocks": 1}}


def lopsided() -> Arrays:
    """Six clients, the second without positives, the fifth without negatives."""
    arrays = images(SIZES, dtype=np.float64 if torch.get_default_dtype() == torch.float64 else np.float32)
    arrays.y_train[arrays.clients[1]], arrays.y_train[arrays.clients[4]] = 0, 1
    return arrays


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", ["fedavg", "a_fedavg", "a_scaffold", "coda_plus", "pairwise"])
def test_references_with_clients_in_cycles(
    monkeypatch: pytest.MonkeyPatch, method: str, chunk: int | None
) -> None:
    """Five rounds in cycles of five, then in cycles of one client twice over; three cycles with stages between them."""
    train = {"participation": {"rule": "cyclic", "clients": 1, "groups": 5}}
    rtol = 1e-9 if chunk == 1 else 1e-5  # shares of padded batches are kept in single precision
    compare(monkeypatch, method, False, chunk, 2, SIZES, train, rtol)
    train = {"participation": {"rule": "random", "clients": 4, "groups": 5}}
    compare(monkeypatch, method, False, chunk, 2, SIZES, train, rtol)
    train = {"participation": {"rule": "cyclic", "clients": 2, "groups": 2}, "rounds": 6}
    compare(monkeypatch, method, False, chunk, 2, SIZES, train, rtol)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize(
    "params", [{"pool": "round"}, {"score": "logit"}, {"passive": 50}, {"opening": 1}, {"share": "count"}]
)
def test_pairwise_with_batches_of_both_signs(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, Any], chunk: int | None
) -> None:
    train = {"participation": {"rule": "cyclic", "clients": 2, "groups": 1}, **PAIRS}
    compare(monkeypatch, "pairwise", False, chunk, 2, SIZES, train, 1e-9, **params)
    compare(monkeypatch, "pairwise", True, chunk, 2, SIZES, train, 1e-9, **params)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("chunk", [1, None])
def test_the_halves_of_a_pairwise_step_weigh_the_same_where_asked(
    monkeypatch: pytest.MonkeyPatch, chunk: int | None
) -> None:
    """Five of six clients have positives, and five have negatives."""
    monkeypatch.setattr(test_reference, "images", lambda *args, **kwargs: lopsided())
    ends = [
        compare(monkeypatch, "pairwise", False, chunk, 2, SIZES, PAIRS, 1e-5, halves=halves)["x"]
        for halves in ("as_algorithm", "equal")
    ]
    assert (ends[0] - ends[1]).norm() > 1e-3


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


def test_without_amplification_it_is_fedavg_bit_for_bit() -> None:
    for how in ({}, RESNET):
        arrays = images(SIZES, side=8)
        single, first = simulate(spec("fedavg", **cycles(3), **how), arrays)
        other, second = simulate(spec("a_fedavg", {"kappa": 1.0}, **cycles(3), **how), arrays)
        assert same(single.server, {name: other.server[name] for name in single.server})
        assert csv_text(first.curve) == csv_text(second.curve)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("how", [{}, RESNET], ids=["mlp", "batch-norm"])
def test_a_window_ends_at_the_amplified_movement(how: dict[str, Any]) -> None:
    """x_0 + kappa (x - x_0); statistics of batch-norm are those without amplification."""
    arrays = images(SIZES, side=8, dtype=np.float64)
    plain, _ = simulate(spec("fedavg", **cycles(1, evaluations=1), **how), arrays)
    start = plain.problem.net.initial()
    for kappa in (1.5, 3.0):
        trained, _ = simulate(spec("a_fedavg", {"kappa": kappa}, **cycles(1, evaluations=1), **how), arrays)
        torch.testing.assert_close(trained.server["x"], start + kappa * (plain.server["x"] - start))
        assert not how or torch.equal(trained.server["buffers"], plain.server["buffers"])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("how", [{}, RESNET], ids=["mlp", "batch-norm"])
def test_with_everybody_in_each_round_a_scaffold_is_scaffold(how: dict[str, Any]) -> None:
    arrays = images((20, 26, 31), side=8, dtype=np.float64)
    train = {"rounds": None, "cycles": 6, "participation": EVERYBODY, "decay_at": [0.5], **how}
    first, _ = simulate(spec("scaffold", {"server_lr": 1.0}, **train), arrays)
    other, _ = simulate(spec("a_scaffold", {"kappa": 1.0}, **train), arrays)
    for name in ("x", "c", *(["buffers"] if how else [])):
        torch.testing.assert_close(first.server[name], other.server[name], rtol=1e-10, atol=1e-12)
    assert float(first.server["c"].norm()) > 1e-2


@pytest.mark.usefixtures("double")
def test_before_the_first_renewal_a_scaffold_is_a_fedavg() -> None:
    arrays = images(SIZES, dtype=np.float64)
    for n, equal in ((1, True), (2, False)):
        first, other = (
            simulate(spec(method, **cycles(n, evaluations=1)), arrays)[0]
            for method in ("a_fedavg", "a_scaffold")
        )
        assert torch.allclose(first.server["x"], other.server["x"], rtol=1e-12, atol=1e-12) == equal


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("rule", ["cyclic", "random"])
def test_the_global_variate_is_the_mean_of_the_clients_after_each_window(rule: str) -> None:
    """Of all clients: with random draws some take part twice in a window, some not at all."""
    seen, repeats = [], 0

    def check(progress: Progress) -> None:
        nonlocal repeats
        kept = simulation.state.own
        repeats = max(repeats, int(kept["steps"].max()) // 4)
        if progress.round % 3:
            return
        renewed = (kept["steps"] > 0)[:, None]  # gradients that are a client's variate from now on
        mean = torch.where(renewed, kept["seen"], kept["c_own"]).mean(0)
        torch.testing.assert_close(simulation.server["c"], mean, rtol=1e-10, atol=1e-13)
        seen.append(float(mean.norm()))

    participation = CYCLIC | {"rule": rule}
    run = spec("a_scaffold", **cycles(5, participation=participation))
    simulation = Simulation(run, images(SIZES, dtype=np.float64), CPU, Execution(on_round=check))
    simulation.run()
    assert len(seen) == 5 and min(seen) > 1e-2 and (repeats == 1) == (rule == "cyclic")


def test_one_group_of_everybody_is_coda_plus_bit_for_bit() -> None:
    """CyCp-Minimax with K = 1 and M = N."""
    stages = {"stages": {"first": 2, "factor": 0.5}, "evaluations": 2}
    train = {"rounds": None, "cycles": 6, "participation": EVERYBODY}
    first, _ = simulate(spec("coda_plus", **train, **stages), images())
    other, _ = simulate(spec("coda_plus", rounds=6, **stages), images())
    assert same(first.server, other.server)


def test_the_anchor_moves_at_stages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []
    new_stage = coda_plus.Method.new_stage

    def spy(self: Any, problem: Problem, server: State) -> State:
        moves.append(problem.cycle.round)
        return new_stage(self, problem, server)

    monkeypatch.setattr(coda_plus.Method, "new_stage", spy)
    simulate(spec("coda_plus", **cycles(7, stages={"first": 1, "scale": 2, "factor": 0.5})), images(SIZES))
    assert moves == [3, 9]


@pytest.mark.parametrize("method", ["pairwise", "a_scaffold", "a_fedavg", "coda_plus"])
@pytest.mark.parametrize("at", [4, 5])
def test_killed_in_mid_cycle_it_gives_the_same_bytes(method: str, at: int, tmp_path: Path) -> None:
    """Both pools filled: what is in use, and what the running cycle has collected; variates half renewed."""
    run = spec(method, **cycles(3), **PAIRS)
    uninterrupted, expected = simulate(run, images(SIZES))
    path, alive = tmp_path / "checkpoint.pt", [True]

    def die(progress: Progress) -> None:
        if progress.round == at and alive.pop():
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Simulation(run, images(SIZES), CPU, saved(path, die)).run()
    assert path.exists()
    resumed = Simulation(run, images(SIZES), CPU, saved(path))
    outcome = resumed.run()
    assert csv_text(outcome.curve) == csv_text(expected.curve)
    assert same(resumed.server, uninterrupted.server) and same(resumed.state.own, uninterrupted.state.own)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("a_fedavg", {"kappa": 0.9}, "'a_fedavg': kappa: Input should be"),
        ("a_scaffold", {"kappa": 0.0}, "'a_scaffold': kappa: Input should be"),
        ("a_fedavg", {"lr": 0.0}, "lr: Input should be"),
        ("pairwise", {"temperature": 0.0}, "temperature is 0.0, but has to be above 0"),
        ("pairwise", {"loss": "sigmoide"}, "Did you mean 'sigmoid'"),
        ("pairwise", {"q": 1.0}, "q is 1.0, but has to be above 1"),
        ("pairwise", {"slope": 0.0}, "slope: Input should be"),
        ("pairwise", {"passive": 0}, "passive: Input should be"),
        ("pairwise", {"pool": "epoch"}, "unknown pool 'epoch'"),
        ("pairwise", {"score": "softmax"}, "unknown score"),
        ("pairwise", {"share": "clients"}, "Did you mean 'client'"),
        ("pairwise", {"halves": "equals"}, "Did you mean 'equal'"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(method: str, params: dict[str, Any], message: str) -> None:
    from world import PARAMS

    with pytest.raises(UserError, match=message):
        make_method(method, PARAMS[method] | params)


def test_a_scaffold_keeps_two_vectors_a_client() -> None:
    kept = dict.fromkeys(a_scaffold.Method.own, 0)
    simulation, _ = simulate(spec("a_scaffold", **cycles(1, evaluations=1)), images(SIZES))
    d = simulation.problem.net.d
    sizes = [tensor.numel() for name, tensor in simulation.state.own.items() if name in kept]
    assert sum(size >= len(SIZES) * d for size in sizes) == 2
