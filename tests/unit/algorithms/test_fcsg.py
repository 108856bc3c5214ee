"""FCSG, FCSG-M, Acc-FCSG-M, Local-SCGD and Local-SCGDM against the poster's lines and what they have to equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from world import CONDITIONAL, points, same, saved

from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import DEFAULT, Simulation
from fedbench.errors import UserError
from fedbench.testing import simulation

OPTIONS = {"sigma": 0.8, "copies": 3, "first_samples": 5, "penalty_weight": 0.01, "penalty_gamma": 10.0}
LINEAR = {"name": "mlp", "options": {"hidden": []}}
Q, LR = 4, 0.2
ANCHORS = ("local", "averaged")

pytestmark = pytest.mark.usefixtures("double")


def run_of(
    method: str, how: Execution = DEFAULT, task: str | None = "invariant", sizes: tuple[int, ...] = (20, 26, 31),
    options: dict[str, Any] | None = None, params: dict[str, Any] | None = None, **train: Any,
) -> Simulation:  # fmt: skip
    """Set up three rounds of four steps of two outer samples; of a conditional method on noisy points."""
    given = {"rounds": 3, "period": Q, "batch_size": 2, **train}
    chosen = None if task is None else {"name": task, "options": OPTIONS | (options or {})}
    values = CONDITIONAL[method] | (params or {})
    return simulation(method, values, points(sizes), how, LINEAR, chosen, **given)


def trained(*args: Any, **kwargs: Any) -> Simulation:
    run = run_of(*args, **kwargs)
    assert run.run().status == "finished"
    return run


@pytest.mark.parametrize("train", [{}, {"decay_at": [0.4], "decay_factor": 0.5}])
def test_with_beta_one_all_are_fcsg_bit_for_bit(train: dict[str, Any]) -> None:
    plain = trained("fcsg", **train).server
    assert same(trained("fcsg_m", params={"beta": 1.0}, **train).server, plain)
    for anchor in ANCHORS:
        params = {"beta": 1.0, "anchor": anchor}
        assert same(trained("acc_fcsg_m", params=params, **train).server, plain)
    assert not same(trained("fcsg_m", **train).server, plain)


def plug_in(x: Tensor, batch: Any) -> Tensor:
    """The gradient of the plug-in loss at x [d + 1], written out: a mean over copies inside the logistic function."""
    x = x.detach().requires_grad_()
    total = torch.zeros(())
    outer, inner = batch
    for a, label, copies in zip(outer.inputs[0], outer.labels[0], inner.inputs[0], strict=True):
        assert a.shape == copies[0].shape
        score = torch.stack([eta @ x[:-1] + x[-1] for eta in copies]).mean()
        total = total + torch.log1p(torch.exp(-(2 * label - 1) * score))
    loss = total / len(outer.labels[0]) + 0.01 * sum(10 * v**2 / (1 + 10 * v**2) for v in x)
    (gradient,) = torch.autograd.grad(loss, x)
    return gradient


def poster(
    run: Simulation, method: str, beta: float, anchor: str, rounds: int, q: int = Q
) -> tuple[Tensor, Tensor]:
    """Algorithms 1 and 2, line by line; the server acts when t - 1 is a multiple of q. Return its next x and u."""
    task, data, n = run.problem.task, run.data, len(run.data.sizes)
    batches = [
        [task.rounds(data, [k], r, "batches").batch(step) for r in range(rounds) for step in range(q)]
        for k in range(n)
    ]
    x_0 = run.problem.net.initial()
    x = [x_0.clone() for _ in range(n)]
    u = [plug_in(x_0, task.first(data, [k], "first batches").batch(0)) for k in range(n)]
    for t in range(1, rounds * q + 2):
        x_old = x
        if t > 1 and (t - 1) % q == 0:
            u_mean = torch.stack(u).mean(0)
            u = [u_mean] * n
            mean = torch.stack(x_old).mean(0)
            x = [mean - LR * u_mean] * n
            if anchor == "averaged":
                x_old = [mean] * n
            if t == rounds * q + 1:
                return x[0], u_mean
        else:
            x = [x_old[k] - LR * u[k] for k in range(n)]
        new = [plug_in(x[k], batches[k][t - 1]) for k in range(n)]
        if method == "fcsg":
            u = new
        elif method == "fcsg_m":
            u = [(1 - beta) * u[k] + beta * new[k] for k in range(n)]
        else:
            u = [new[k] + (1 - beta) * (u[k] - plug_in(x_old[k], batches[k][t - 1])) for k in range(n)]
    raise AssertionError


@pytest.mark.parametrize(
    ("method", "anchor"),
    [("fcsg", "local"), ("fcsg_m", "local"), ("acc_fcsg_m", "local"), ("acc_fcsg_m", "averaged")],
)
@pytest.mark.parametrize("chunk", [1, None])
def test_the_engine_is_the_poster(method: str, anchor: str, chunk: int | None) -> None:
    params = {"anchor": anchor} if method == "acc_fcsg_m" else {}
    run = trained(method, Execution(chunk=chunk), params=params)
    x, u = poster(run_of(method, params=params), method, 0.3, anchor, 3)
    torch.testing.assert_close(run.server["x"] - LR * run.server["u"], x, rtol=0, atol=1e-12)
    torch.testing.assert_close(run.server["u"], u, rtol=0, atol=1e-12)


def full_gradients(run: Simulation, models: Tensor) -> Tensor:
    """Each client's gradient on all its data at its own model [N, d]."""
    collected = []
    for client, x in enumerate(models):
        batch = run.data.work([client], 0, "batches").batch(0)
        gradient, _ = run.problem.gradient(lambda w, batch=batch: run.problem.loss(w, batch, None), x[None])
        collected.append(gradient[0])
    return torch.stack(collected)


@pytest.mark.parametrize("beta", [0.1, 0.6])
def test_without_noise_the_local_anchor_keeps_the_mean_direction_exact(beta: float) -> None:
    """u = mean grad F_n(x_n) after each synchronisation: what the correction is for. The averaged anchor differs."""
    exact = {}
    for anchor in ANCHORS:
        params = {"beta": beta, "anchor": anchor}
        run = run_of("acc_fcsg_m", params=params, task=None, batch_size=100)
        for _ in range(3):
            local = run.train_round()["x_old"]
            mean = full_gradients(run, local).mean(0)
            exact[anchor] = torch.allclose(run.server["u"], mean, rtol=0, atol=1e-12)
    assert exact == {"local": True, "averaged": False}


@pytest.mark.parametrize("anchor", ANCHORS)
def test_one_client_without_noise_follows_the_gradient(anchor: str) -> None:
    run = run_of("acc_fcsg_m", params={"anchor": anchor}, task=None, batch_size=100, sizes=(26,))
    for _ in range(3):
        local = run.train_round()["x_old"]
        torch.testing.assert_close(run.server["u"][None], full_gradients(run, local), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["fcsg", "fcsg_m", "acc_fcsg_m"])
def test_with_a_synchronisation_each_step_the_clients_are_one_machine(method: str) -> None:
    """One step a round: x and u are those of a machine that has the batches of all clients, whatever the anchor."""
    run = run_of(method, period=1, rounds=6)
    task, data = run.problem.task, run.data

    def pooled(at: Tensor, step: int) -> Tensor:
        batches = [task.rounds(data, [k], step, "batches").batch(0) for k in range(3)]
        return torch.stack([plug_in(at, batch) for batch in batches]).mean(0)

    for _ in range(2):  # the first move is each client's own, and the correction remembers it for one step
        run.train_round()
    old, u = run.server["x"], run.server["u"]
    for step in range(2, 6):
        x = old - LR * u
        new = pooled(x, step)
        others = {"fcsg": new, "fcsg_m": 0.7 * u + 0.3 * new}
        u = others.get(method, new + 0.7 * (u - pooled(old, step)))
        old = x
        run.train_round()
        torch.testing.assert_close(run.server["x"], x, rtol=0, atol=1e-12)
        torch.testing.assert_close(run.server["u"], u, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("batch_size", "state"), [(1, "own"), (2, "own"), (1, "shared")])
@pytest.mark.parametrize("momentum", [False, True])
def test_local_scgd_with_fresh_inner_values_is_fcsg(batch_size: int, state: str, momentum: bool) -> None:
    """Its model after a round is the one FCSG moves to next: it averages after the move and FCSG before it."""
    theirs, ours = ("local_scgdm", "fcsg_m") if momentum else ("local_scgd", "fcsg")
    inner = {"beta_in": 1.0, "state": state}
    result = trained(
        theirs, params=inner, batch_size=batch_size, options={"first_samples": 5 if state == "own" else 1}
    )
    known = trained(ours, batch_size=batch_size, options={"first_samples": 5 if state == "own" else 1})
    expected = known.server["x"] - LR * known.server["u"]
    torch.testing.assert_close(result.server["x"], expected, rtol=0, atol=1e-12)
    if momentum:
        torch.testing.assert_close(result.server["m"], known.server["u"], rtol=0, atol=1e-12)


def test_an_inner_state_that_is_shared_or_slow_is_something_else() -> None:
    known = trained("fcsg").server
    expected = known["x"] - LR * known["u"]
    for params in ({"beta_in": 1.0, "state": "shared"}, {"beta_in": 0.5, "state": "own"}):
        assert not torch.allclose(trained("local_scgd", params=params).server["x"], expected, atol=1e-4)


def test_momentum_one_is_local_scgd() -> None:
    plain, momentum = trained("local_scgd").server, trained("local_scgdm", params={"beta": 1.0}).server
    assert torch.equal(momentum["x"], plain["x"]) and torch.equal(momentum["s"], plain["s"])


def test_the_inner_state_is_the_running_mean_of_inner_values() -> None:
    """Without noise and with all data in a batch, s is known: it is the mean score at the model of each step."""
    run = run_of(
        "local_scgd", options={"sigma": 0.0, "first_samples": 20}, sizes=(20,), batch_size=20, period=1
    )
    inputs = run.data.inputs
    x = run.problem.net.initial()
    s = (inputs @ x[:-1] + x[-1]).mean()
    run.train_round()
    first = x - LR * plug_in(x, run.problem.task.first(run.data, [0], "first batches").batch(0))
    s = 0.4 * s + 0.6 * (inputs @ first[:-1] + first[-1]).mean()
    assert float(run.server["s"]) == pytest.approx(float(s), abs=1e-12)


@pytest.mark.parametrize("method", CONDITIONAL)
def test_runs_repeat_whoever_is_stacked_and_after_a_stop(method: str, tmp_path: Path) -> None:
    once = trained(method).server
    assert same(trained(method).server, once)
    stacked = trained(method, Execution(chunk=None)).server
    assert all(torch.allclose(stacked[name], once[name], rtol=0, atol=1e-12) for name in once)

    def stop(progress: Progress) -> None:
        if progress.round == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run_of(method, saved(tmp_path / "checkpoint.pt", stop)).run()
    resumed = trained(method, saved(tmp_path / "checkpoint.pt"))
    assert same(resumed.server, once)


def test_methods_and_rounds_that_do_not_fit_are_named() -> None:
    with pytest.raises(UserError, match="'local_scgd' works on nested draws; task 'classification' has"):
        run_of("local_scgd", task=None)
    with pytest.raises(UserError, match="'acc_fcsg_m' needs all clients in every round"):
        run_of("acc_fcsg_m", participation={"rule": "random", "clients": 2})
    with pytest.raises(UserError, match=r"step by step: give train\.period, not local_epochs"):
        run_of("fcsg", period=None, local_epochs=1)
    trained("fcsg", participation={"rule": "random", "clients": 2})
