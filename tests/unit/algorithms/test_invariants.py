"""What must hold between methods, whatever the data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import Tensor
from world import CPU, METHODS, PARAMS, images, same, simulate, spec

from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import Simulation
from fedbench.models import mlp


def metrics_of(outcome: Any, suffix: str = "") -> list[dict[str, float]]:
    """The curve without counts, of one evaluated point."""
    rows = []
    for row in outcome.curve:
        names = [n for n in row if n.startswith("test_") and n.endswith("_h") == (suffix == "_h")]
        rows.append({name.removesuffix("_h"): row[name] for name in names})
    return rows


@pytest.mark.parametrize("hvp", ["exact", "first_order", "finite_difference"])
def test_without_inner_step_local_scgdam_is_local_sgdam_bit_for_bit(with_norm: bool, hvp: str) -> None:
    arrays = images()
    plain = {name: PARAMS["local_scgdam"][name] for name in PARAMS["local_sgdam"]}
    inner = {"rho": 0.0, "alpha_h": 1.0, "hvp": hvp}
    train = {"decay_at": [0.5], "rounds": 4}
    single, first = simulate(spec("local_sgdam", plain, **train), arrays)
    other, second = simulate(spec("local_scgdam", inner, **train), arrays)
    for name in ("x", "alpha", "u", "v"):
        assert torch.equal(single.server[name], other.server[name]), name
    assert torch.equal(other.server["h"], other.server["x"])
    if with_norm:
        assert torch.equal(single.server["buffers"], other.server["buffers_h"])
        # those of the inner batches
        assert not torch.equal(single.server["buffers"], other.server["buffers"])
    assert metrics_of(first) == metrics_of(second, "_h")


@pytest.mark.usefixtures("with_norm")
@pytest.mark.parametrize(
    ("method", "params", "base"),
    [
        ("fedprox", {"mu": 0.0}, "fedavg"),
        ("moon", {"mu": 0.0}, "fedavg"),
        ("fedlc", {"temperature": 0.0}, "fedavg"),
        ("a_fedavg", {"kappa": 1.0}, "fedavg"),
        ("focal_loss", {"gamma": 0.0}, "fedavg"),
        ("ratio_loss", {"ratio_alpha": 1.0, "ratio_beta": 0.0}, "fedavg"),
        ("climb", {"dual_lr": 0.0}, "fedavg"),
        ("climb_scaffold", {"dual_lr": 0.0}, "scaffold"),
        ("local_sgdm_rl", {"ratio_alpha": 1.0, "ratio_beta": 0.0}, "local_sgdm"),
        ("local_sgdm_cw", {"power": 0.0}, "local_sgdm"),
        ("local_sgdm", {"momentum": 0.0, "lr": 0.2}, "fedavg"),
        ("coda", {"restart_samples": 0}, "coda_plus"),
    ],
)
def test_degenerate_constants_give_the_base_method_bit_for_bit(
    method: str, params: dict[str, Any], base: str
) -> None:
    arrays, how = images(), {"rounds": 3, "decay_at": [0.5]}
    single, first = simulate(spec(base, **how), arrays)
    other, second = simulate(spec(method, params, **how), arrays)
    shared = single.server.keys() & other.server.keys()
    assert {"x"} <= shared
    assert same({n: single.server[n] for n in shared}, {n: other.server[n] for n in shared})
    assert metrics_of(first) == metrics_of(second)
    usual, _ = simulate(spec(method, **how), arrays)
    assert not torch.equal(usual.server["x"], single.server["x"])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fedavg", {}),
        ("local_sgdm", {}),
        ("coda", {"proximal": 0.0, "restart_samples": 0}),
        ("coda_plus", {}),
        ("codasca", {"server_lr": 1.0}),
    ],
)
def test_a_period_of_one_is_one_machine_with_all_batches_pooled(method: str, params: dict[str, Any]) -> None:
    arrays = images((18, 18, 18), dtype=np.float64)
    simulation, _ = simulate(spec(method, params, period=1, rounds=12), arrays)
    data = simulation.data
    module = mlp.build((1, 6, 6), 1, hidden=[5])
    reference.set_flat(module, simulation.problem.net.initial())

    def pooled(client: int, index: int, purpose: str) -> list[Tensor]:
        parts = [data.plan(k, index, purpose)[0] + data.offsets[k] for k in range(3)]
        return [torch.tensor(np.concatenate(parts))]

    world = reference.World(
        module, [(data.inputs, data.labels)], pooled,
        first=lambda k, purpose: (data.inputs, data.labels), draw=lambda k, n: (data.inputs, data.labels),
        auxiliary=[], prior=data.prior, rounds=12,
    )  # fmt: skip
    expected = reference.method(method)(world, **(PARAMS[method] | params))
    for name in ("x", "alpha", "m"):
        if name in simulation.server:
            torch.testing.assert_close(simulation.server[name], expected[name], rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("double")
# more clients, more pairs
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pairwise"])
def test_equal_clients_with_full_batches_are_one_client(method: str) -> None:
    first = images((16,), dtype=np.float64)
    many = dataclasses.replace(first, clients=[*first.clients] * 3)
    train = {"batch_size": 16, "rounds": 4, "decay_at": [0.5]}
    # the ratio loss draws its auxiliary samples from all data, which are now three times as many
    params = (
        {"n_aux": 100} if "n_aux" in PARAMS[method] else {"restart_samples": 100} if method == "coda" else {}
    )
    alone, _ = simulate(spec(method, params, clients=1, **train), first)
    copies, _ = simulate(spec(method, params, clients=3, **train), many)
    shared = [name for name in alone.server if alone.server[name].shape == copies.server[name].shape]
    mine, theirs = ({name: run.server[name] for name in shared} for run in (alone, copies))
    torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("method", ["scaffold", "climb_scaffold", "codasca"])
@pytest.mark.parametrize("participation", [{"rule": "full"}, {"rule": "random", "clients": 2}])
def test_the_variate_stays_the_mean_of_the_clients(method: str, participation: dict[str, Any]) -> None:
    seen = []

    def check(progress: Progress) -> None:
        mean = simulation.state.own["c_own"].mean(0)
        # climb_scaffold sends a weighted mean
        result = simulation.server["c_mean" if method == "climb_scaffold" else "c"]
        torch.testing.assert_close(result, mean, rtol=1e-4, atol=1e-6)
        seen.append(float(mean.norm()))

    run = spec(method, participation=participation, rounds=6, decay_at=[0.5])
    simulation = Simulation(run, images(), CPU, Execution(on_round=check))
    simulation.run()
    assert len(seen) == 6 and min(seen) > 1e-3


@pytest.mark.usefixtures("double")
def test_fednova_with_equally_many_steps_is_fedavg_and_else_is_not() -> None:
    equal, unequal = images((20, 20, 20), dtype=np.float64), images((8, 20, 40), dtype=np.float64)
    train = {"period": None, "local_epochs": 1, "rounds": 4}
    for arrays, agree in ((equal, True), (unequal, False)):
        x = [simulate(spec(m, {"lr": 0.2}, **train), arrays)[0].server["x"] for m in ("fedavg", "fednova")]
        assert (float((x[0] - x[1]).abs().max()) < 1e-12) == agree


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("participation", [{"rule": "full"}, {"rule": "random", "clients": 2}])
def test_feddyns_server_holds_the_mean_of_its_clients_gradients(participation: dict[str, Any]) -> None:
    """h and the g_k move by the same changes, so that h = mean_k g_k after every round (Acar et al., section 2)."""
    simulation, _ = simulate(spec("feddyn", participation=participation, rounds=6), images(dtype=np.float64))
    h, mean = simulation.server["h"], simulation.state.own["g_own"].mean(0)
    torch.testing.assert_close(h, mean, rtol=1e-10, atol=1e-13)
    assert float(h.norm()) > 1e-3


@pytest.mark.usefixtures("double")
def test_the_first_step_of_fedadam_and_fedyogi_is_bounded_by_the_servers_step_size() -> None:
    """Each parameter moves by at most server_lr (1 - beta1) / sqrt(1 - beta2) in the first round, however far D is."""
    for method in ("fedadam", "fedyogi"):
        params = {"server_lr": 0.01, "beta1": 0.0, "beta2": 0.0, "tau": 1e-6}
        simulation, _ = simulate(spec(method, params, rounds=1), images(dtype=np.float64))
        moved = (simulation.server["x"] - simulation.problem.net.initial()).abs()
        assert float(moved.max()) <= 0.01 and float(moved.max()) > 0.0099


@pytest.mark.usefixtures("double")
def test_scaffold_converges_where_fedavg_stalls() -> None:
    """Logistic regression on two clients with opposite data: many local steps pull FedAvg off the optimum."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4))
    y = (x[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(np.int64)
    x[20:] = 2 * x[20:] + [0, 3, 0, 0]
    y[20:] = 1 - y[20:]
    arrays = Arrays(x, y, x, y, [np.arange(20), np.arange(20, 40)], np.array([], int), 2)
    train = {"batch_size": 20, "period": 10, "rounds": 80, "weight_decay": 0.05, "options": {"hidden": []}}

    def slope(method: str) -> float:
        params = {"lr": 0.1} if method == "fedavg" else {"lr": 0.1, "server_lr": 1.0}
        simulation, _ = simulate(spec(method, params, clients=2, **train), arrays)
        w = simulation.server["x"].clone().requires_grad_()
        logits = torch.tensor(x) @ w[:4] + w[4]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(y).double())
        (gradient,) = torch.autograd.grad(loss + 0.05 / 2 * (w**2).sum(), w)
        return float(gradient.norm())

    assert slope("scaffold") < 1e-5
    assert slope("fedavg") > 1e-3
