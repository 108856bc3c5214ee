"""ExampleName: the contract of every method, and what is particular to this one."""

from __future__ import annotations

import torch

from fedbench.testing import check_method, simulation

PARAMS = {"lr": 0.1, "momentum": 0.8}


def test_the_contract_of_a_method_holds() -> None:
    check_method("example_name", PARAMS)


def test_it_learns() -> None:
    run = simulation("example_name", PARAMS, rounds=30).run()
    assert run.curve[0]["test_auc"] < 0.7 and run.curve[-1]["test_auc"] > 0.9


def test_without_momentum_it_is_fedavg() -> None:
    """A special case that is known; replace it by one of your method."""
    special = simulation("example_name", PARAMS | {"momentum": 0.0})
    known = simulation("fedavg", {"lr": 0.1})
    for run in (special, known):
        run.run()
    torch.testing.assert_close(special.server["x"], known.server["x"])
