"""Methods of cycp: their references under cyclic participation, special cases, the age of scores, what is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_reference
import torch
from cycles import CYCLIC, PAIRS, SIZES, cycles
from test_reference import compare
from world import CPU, images, simulate, spec

from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import Simulation

EVERYBODY = {"rule": "cyclic", "clients": 3, "groups": 1}


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
    monkeypatch.setattr(test_reference, "images", lambda *args, **kwargs: lopsided())
    train = {"participation": {"rule": "random", "clients": 4, "groups": 5}}
    rtol = 1e-9 if chunk == 1 else 1e-5
    compare(monkeypatch, method, False, chunk, 2, SIZES, train | {"batch_size": 4}, rtol)
    if method == "pairwise":
        compare(monkeypatch, method, True, chunk, 2, SIZES, train | PAIRS, 1e-9)


@pytest.mark.usefixtures("double")
def test_a_window_ends_at_the_amplified_movement(with_norm: bool) -> None:
    """x_0 + kappa (x - x_0); statistics of batch-norm are those without amplification."""
    arrays = images(SIZES, dtype=np.float64)
    plain, _ = simulate(spec("fedavg", **cycles(1, evaluations=1)), arrays)
    start = plain.problem.net.initial()
    for kappa in (1.5, 3.0):
        trained, _ = simulate(spec("a_fedavg", {"kappa": kappa}, **cycles(1, evaluations=1)), arrays)
        torch.testing.assert_close(trained.server["x"], start + kappa * (plain.server["x"] - start))
        assert not with_norm or torch.equal(trained.server["buffers"], plain.server["buffers"])


@pytest.mark.usefixtures("double")
def test_with_everybody_in_each_round_a_scaffold_is_scaffold(with_norm: bool) -> None:
    arrays = images((20, 26, 31), dtype=np.float64)
    train = {"rounds": None, "cycles": 6, "participation": EVERYBODY, "decay_at": [0.5]}
    first, _ = simulate(spec("scaffold", {"server_lr": 1.0}, **train), arrays)
    other, _ = simulate(spec("a_scaffold", {"kappa": 1.0}, **train), arrays)
    for name in ("x", "c", *(["buffers"] if with_norm else [])):
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
