"""Clients weigh by their samples in every average of a method, or the method says that it cannot."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from world import METHODS, images, same, simulate, spec

from fedbench.errors import UserError

OWN = ("climb", "climb_scaffold", "pairwise")
"""Methods that weigh clients themselves."""
WEIGHED = [name for name in METHODS if name not in OWN]
FULL: dict[str, Any] = {
    "batch_size": None, "batches_per_epoch": 1, "rounds": 4, "decay_at": [0.5], "prior": "client",
}  # fmt: skip


@pytest.mark.usefixtures("double", "with_norm")
@pytest.mark.parametrize("method", WEIGHED)
def test_a_client_of_twice_the_samples_is_two_clients(method: str) -> None:
    """On full batches: what another client draws is the same, in another order."""
    arrays = images((16, 32), dtype=np.float64)
    # class weights are counted over the samples that there are, and those of the second client are there twice
    everything: dict[str, Any] = {"power": 0.0} if method == "local_sgdm_cw" else {}
    everything |= {"ratio_alpha": 1.0, "ratio_beta": 0.0} if method in ("ratio_loss", "local_sgdm_rl") else {}
    everything |= {"restart_samples": 100} if method == "coda" else {}
    weighed, _ = simulate(spec(method, everything, clients=2, weights="samples", **FULL), arrays)
    twice = dataclasses.replace(arrays, clients=[*arrays.clients, arrays.clients[1]])
    copies, _ = simulate(spec(method, everything, clients=3, **FULL), twice)
    alike, _ = simulate(spec(method, everything, clients=2, **FULL), arrays)
    shared = [name for name in weighed.server if weighed.server[name].shape == copies.server[name].shape]
    mine, theirs = ({name: run.server[name] for name in shared} for run in (weighed, copies))
    torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-9)
    assert (weighed.server["x"] - alike.server["x"]).norm() > 1e-3


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("method", ["scaffold", "codasca", "feddyn", "a_scaffold", "fedavg"])
def test_of_some_clients_the_shares_are_of_those_and_what_the_server_sums_is_of_all(method: str) -> None:
    run = spec(method, clients=3, weights="samples", rounds=6, participation={"rule": "random", "clients": 2})
    arrays = images((20, 26, 64), dtype=np.float64)
    simulation, _ = simulate(run, arrays)
    share = torch.tensor([20.0, 26.0, 64.0]) / 110
    if method == "fedavg":
        chosen = simulation.problem.participants(6)
        clients = simulation.train_round()
        expected = sum(share[k] * clients["x"][row] for row, k in enumerate(chosen)) / share[chosen].sum()
        torch.testing.assert_close(simulation.server["x"], expected)
        return
    of_clients, of_server = ("g_own", "h") if method == "feddyn" else ("c_own", "c")
    held = simulation.state.own[of_clients]
    if method == "a_scaffold":  # who is away renews its variate when it comes again
        held = torch.where(simulation.state.own["steps"][:, None] > 0, simulation.state.own["seen"], held)
    expected = (share[:, None] * held).sum(0)
    torch.testing.assert_close(simulation.server[of_server], expected, rtol=1e-6, atol=1e-9)
    assert expected.norm() > 1e-3


@pytest.mark.parametrize("method", WEIGHED)
def test_with_equal_clients_both_are_the_same_to_the_last_bit(method: str) -> None:
    arrays = images((24, 24))
    equal, samples = (
        simulate(spec(method, clients=2, weights=how, rounds=2), arrays) for how in ("equal", "samples")
    )
    assert same(equal[0].server, samples[0].server) and repr(equal[1].curve) == repr(samples[1].curve)


@pytest.mark.parametrize("method", OWN)
def test_a_method_that_weighs_clients_itself_refuses(method: str) -> None:
    with pytest.raises(UserError, match=rf"{method}.*train\.weights"):
        simulate(spec(method, weights="samples"), images())


def test_a_server_step_of_ones_own_has_to_say_that_it_weighs() -> None:
    from fedbench.algorithms import fedavg

    class Silent(fedavg.Method):
        def server(self, *args: Any) -> Any:
            return super().server(*args)

    class Speaks(Silent):
        weighs = True

        def server(self, *args: Any) -> Any:
            return super().server(*args)

    assert (fedavg.Method.weighs, Silent.weighs, Speaks.weighs) == (True, False, True)
