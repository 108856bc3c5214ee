"""Floats sent per client: algorithms' own table, method by method."""

from __future__ import annotations

from typing import Any

import pytest
from world import METHODS, images, simulate, spec

N, CHOSEN, ROUNDS = 4, 2, 6
SIZES = (20, 26, 31, 24)

PER_ROUND = {  # floats (up, down) of a participant in a round, as functions of the number of parameters d
    "fedavg": lambda d: (d, d),
    "fedprox": lambda d: (d, d),
    "adam": lambda d: (d, d),
    "fednova": lambda d: (d + 1, d),  # how many steps a client made goes up
    "feddyn": lambda d: (d, d),
    "fedadam": lambda d: (d, d),
    "fedyogi": lambda d: (d, d),
    "moon": lambda d: (d, d),
    "fedlc": lambda d: (d, d),
    "focal_loss": lambda d: (d, d),
    "ratio_loss": lambda d: (d, d + 2),  # class weights come down
    "scaffold": lambda d: (2 * d, 2 * d),
    "a_fedavg": lambda d: (d, d),
    "a_scaffold": lambda d: (2 * d, 2 * d),  # the change of the variate goes up each time
    "climb": lambda d: (d, d + 1),  # a client's weight comes down
    "climb_scaffold": lambda d: (2 * d, 2 * d + 1),
    "local_sgdm": lambda d: (2 * d, 2 * d),
    "local_sgdm_rl": lambda d: (2 * d, 2 * d + 2),
    "coda_plus": lambda d: (d + 3, d + 3),
    "coda": lambda d: (d + 3, d + 3),
    "codasca": lambda d: (2 * (d + 3), 2 * (d + 3)),
    "local_sgdam": lambda d: (2 * d + 6, 2 * d + 6),
    "local_scgdam": lambda d: (3 * d + 8, 3 * d + 8),
}
OF_THEIR_OWN = {"pairwise"}
"""Methods that send what depends on the data: their tests count it."""
STAGE = {"coda": (4, 1)}
"""Floats of every client at the end of a stage: two means and two counts up, the new dual down."""


def duals(d: int) -> tuple[float, float]:
    """Floats per client in a dual step: every loss up; the model down to those who were not there."""
    return 1, d * (N - CHOSEN) / N


def test_the_table_is_whole() -> None:
    assert PER_ROUND.keys() | OF_THEIR_OWN == {*METHODS}


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", PER_ROUND)
def test_counts_what_the_table_says(method: str, chunk: int | None) -> None:
    train: dict[str, Any] = {"participation": {"rule": "random", "clients": CHOSEN}, "rounds": ROUNDS}
    run = spec(method, clients=N, decay_at=[0.5, 0.75], evaluations=ROUNDS, **train)
    simulation, outcome = simulate(run, images(SIZES), chunk)
    d = simulation.problem.net.d
    up, down = (CHOSEN / N * floats for floats in PER_ROUND[method](d))
    extra_up, extra_down = STAGE.get(method, (0, 0))
    dual_up, dual_down = duals(d) if "climb" in method else (0, 0)
    for row in outcome.curve:
        r = row["round"]
        stages = sum(r > stage for stage in (3, round(0.75 * ROUNDS)))  # counted with the round they begin
        steps = r // 2
        assert row["floats_up"] == pytest.approx(r * up + stages * extra_up + steps * dual_up)
        assert row["floats_down"] == pytest.approx(r * down + stages * extra_down + steps * dual_down)
        assert row["floats_buffers"] == 0


@pytest.mark.parametrize(
    ("method", "copies"), [("fedavg", 1), ("scaffold", 1), ("local_sgdam", 1), ("local_scgdam", 2)]
)
def test_running_statistics_are_counted_apart(method: str, copies: int) -> None:
    run = spec(method, network="resnet20", options={"blocks": 1}, rounds=2)
    simulation, outcome = simulate(run, images(side=8))
    net = simulation.problem.net
    assert outcome.curve[-1]["floats_buffers"] == 2 * copies * net.n_buffers > 0
    assert outcome.curve[-1]["floats_up"] == 2 * PER_ROUND[method](net.d)[0]


def test_no_restart_costs_nothing() -> None:
    run = spec("coda", {"restart_samples": 0}, decay_at=[0.5], rounds=4)
    simulation, outcome = simulate(run, images())
    assert outcome.curve[-1]["floats_up"] == 4 * (simulation.problem.net.d + 3)


def test_an_average_anchor_has_to_be_sent() -> None:
    run = spec("codasca", {"anchor": "average"}, decay_at=[0.5], rounds=4)
    simulation, outcome = simulate(run, images())
    d = simulation.problem.net.d
    assert outcome.curve[-1]["floats_down"] == 4 * 2 * (d + 3) + d + 2
    assert outcome.curve[-1]["floats_up"] == 4 * 2 * (d + 3)
