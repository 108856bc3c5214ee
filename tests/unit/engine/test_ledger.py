"""Floats sent per client and samples drawn: algorithms' own table, method by method."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from world import CONDITIONAL, METHODS, PARAMS, images, points, simulate, spec

from fedbench import algorithms, registry
from fedbench.engine.simulate import DEFAULT, Simulation
from fedbench.testing import simulation as set_up

N, CHOSEN, ROUNDS = 4, 2, 8
SIZES = (20, 26, 31, 24)
PERIOD, BATCH = 4, 6
STAGES = (0, 4, 6)
"""The rounds that begin one, with decays at 0.5 and 0.75 of eight."""
TURNS: dict[str, dict[str, Any]] = {
    "all": {"rule": "full"},
    "some": {"rule": "random", "clients": CHOSEN},
    "cycles": {"rule": "cyclic", "clients": 1, "groups": 2},
}

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
    "local_sgdm_cw": lambda d: (2 * d, 2 * d),
    "local_sgdm_rl": lambda d: (2 * d, 2 * d + 2),
    "coda_plus": lambda d: (d + 3, d + 3),
    "coda": lambda d: (d + 3, d + 3),
    "codasca": lambda d: (2 * (d + 3), 2 * (d + 3)),
    "local_sgdam": lambda d: (2 * d + 6, 2 * d + 6),
    "local_scgdam": lambda d: (3 * d + 8, 3 * d + 8),
}
NESTED = {  # of the methods for nested draws, p the length of an inner value
    "fcsg": lambda d, p: 2 * d,
    "fcsg_m": lambda d, p: 2 * d,
    "acc_fcsg_m": lambda d, p: 2 * d,
    "local_scgd": lambda d, p: d + p,
    "local_scgdm": lambda d, p: 2 * d + p,
}
ANCHORED = ("coda_plus", "coda", "codasca")
"""Methods with a stage's anchor x_0 [d+2]: who joins in mid-stage receives it beside the model."""
BATCHES = {"local_scgdam": 2}
"""Mini-batches of a step, where they are not one."""
FIRST = ("local_sgdam", "local_scgdam")
"""Methods whose direction starts from a batch, of each client that is there in round 0."""


def test_the_table_is_whole() -> None:
    ours = {*registry.names(algorithms)} - {*registry.origins(algorithms)}
    assert PER_ROUND.keys() | NESTED.keys() | {"pairwise", "untrained"} >= {*METHODS, *CONDITIONAL} | ours


def present(simulation: Simulation, rounds: int) -> list[list[int]]:
    """Who takes part in each of the first rounds."""
    assert simulation.problem.participants is not None
    return [simulation.problem.participants(index) for index in range(rounds)]


def late(elsewhere: list[list[int]]) -> int:
    """Count clients whose first round of a stage is not the stage's first."""
    ends = (*STAGES[1:], len(elsewhere))
    stages = [elsewhere[begin:end] for begin, end in zip(STAGES, ends, strict=True)]
    return sum(len({*chain(*stage)} - {*stage[0]}) for stage in stages if stage)


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", PER_ROUND)
def test_counts_what_the_table_says(method: str, chunk: int | None, turns: str) -> None:
    run = spec(
        method, clients=N, decay_at=[0.5, 0.75], evaluations=3, rounds=ROUNDS, participation=TURNS[turns]
    )
    simulation, outcome = simulate(run, images(SIZES), chunk)
    d = simulation.problem.net.d
    up, down = PER_ROUND[method](d)
    assert len(outcome.curve) == 4
    for row in outcome.curve:
        rounds = int(row["round"])
        elsewhere = present(simulation, rounds)
        visits = sum(map(len, elsewhere))
        sent, received, forward = visits * up, visits * down, 0
        samples = visits * PERIOD * BATCH * BATCHES.get(method, 1)
        if method in FIRST and rounds:
            samples += len(elsewhere[0]) * BATCH * BATCHES.get(method, 1)
        if method in ANCHORED:
            received += late(elsewhere) * (d + 2)
        if method == "coda":  # at the end of a stage two means and two counts up, the new dual down
            ended = sum(rounds > stage for stage in STAGES[1:])
            sent, received, forward = sent + ended * N * 4, received + ended * N, ended * N * 12
        if "climb" in method:  # in a dual step every loss up; the model down to those who were not there
            steps = [N - len(chosen) for chosen in elsewhere[1::2]]
            sent, received = sent + N * len(steps), received + d * sum(steps)
            forward = sum(SIZES) * len(steps)
        assert row["floats_up"] * N == pytest.approx(sent)
        assert row["floats_down"] * N == pytest.approx(received)
        assert row["floats_buffers"] == 0
        assert (row["samples"], row["samples_forward"]) == (samples, forward)


@pytest.mark.parametrize(
    ("method", "turns"),
    [(name, turns) for name in NESTED for turns in TURNS if turns == "all" or name != "acc_fcsg_m"],
)
def test_nested_draws_count_inner_samples_and_the_first_ones(method: str, turns: str) -> None:
    copies, first = 3, 5
    options = {
        "sigma": 0.8, "copies": copies, "first_samples": first, "penalty_weight": 0.01, "penalty_gamma": 10.0,
    }  # fmt: skip
    train = {"rounds": ROUNDS, "evaluations": 3, "batch_size": BATCH, "participation": TURNS[turns]}
    run = set_up(
        method, CONDITIONAL[method], points(SIZES, dtype=np.float32), DEFAULT,
        {"name": "mlp", "options": {"hidden": []}},
        task={"name": "invariant", "options": options}, **train,
    )  # fmt: skip
    outcome = run.run()
    floats = NESTED[method](run.problem.net.d, 1)
    for row in outcome.curve:
        elsewhere = present(run, int(row["round"]))
        visits, starting = sum(map(len, elsewhere)), len(elsewhere[0]) if elsewhere else 0
        assert row["samples"] == (visits * PERIOD * BATCH + starting * first) * (1 + copies)
        assert row["samples_forward"] == 0
        assert row["floats_up"] * N == row["floats_down"] * N == pytest.approx(visits * floats)


@pytest.mark.parametrize(
    ("task", "a_step"),
    [({"name": "average_precision", "options": {"positives": 2, "margin": 0.1}}, BATCH + 2), (None, BATCH)],
)
def test_first_samples_are_those_of_one_step(task: dict[str, Any] | None, a_step: int) -> None:
    run = set_up("fcsg", CONDITIONAL["fcsg"], images(SIZES), task=task, batch_size=BATCH, rounds=2)
    assert run.run().metrics["samples"] == N * a_step * (1 + 2 * PERIOD)


@pytest.mark.parametrize(
    ("method", "batches"),
    [("local_sgdm", 2 * PERIOD), ("local_sgdam", 1 + 2 * PERIOD), ("local_scgdam", 2 + 4 * PERIOD)],
)
def test_batches_with_a_share_of_positives_count_as_others(method: str, batches: int) -> None:
    _, outcome = simulate(spec(method, positives=0.25, rounds=2), images(SIZES))
    assert outcome.metrics["samples"] == N * BATCH * batches


@pytest.mark.parametrize(("turns", "pool"), [("all", "round"), ("some", "round"), ("cycles", "cycle")])
def test_pairs_count_the_scores_they_send_receive_and_open_with(turns: str, pool: str) -> None:
    train = {"positives": 3, "participation": TURNS[turns], "rounds": ROUNDS, "evaluations": 3}
    simulation, outcome = simulate(spec("pairwise", {"pool": pool}, clients=N, **train), images(SIZES))
    d, opening, passive = (
        simulation.problem.net.d,
        PARAMS["pairwise"]["opening"],
        PARAMS["pairwise"]["passive"],
    )
    first = {*chain(*present(simulation, 2 if turns == "cycles" else 1))}
    opened = min(outcome.curve[0][f"pool_{sign}"] for sign in ("positives", "negatives"))
    assert opened >= PERIOD * passive or turns != "all"
    for row in outcome.curve:
        elsewhere = present(simulation, int(row["round"]))
        visits = sum(map(len, elsewhere))
        scores, received = visits * PERIOD * BATCH, visits * (d + 2 * PERIOD * passive)
        for sign in ("positives", "negatives"):  # the first pools may be smaller than what a round takes
            lack = max(0, PERIOD * passive - outcome.curve[0][f"pool_{sign}"])
            received -= lack * sum(map(len, elsewhere[: 2 if turns == "cycles" else 1]))
        assert row["floats_up"] * N == pytest.approx(visits * d + scores + len(first) * opening)
        assert row["floats_down"] * N == pytest.approx(received + len(first) * d)
        assert (row["samples"], row["samples_forward"]) == (scores, len(first) * opening)


def test_a_selected_row_costs_what_the_whole_run_did() -> None:
    """However early it is: what came after it had to be trained to know that it is the best."""
    run = spec("fedavg", {"lr": 0.0}, rounds=ROUNDS, evaluations=ROUNDS)  # all rows alike: the first is
    train = run.train.model_copy(update={"select": "val_auc"})
    data = run.data.model_copy(update={"validation": 0.2})
    _, outcome = simulate(run.model_copy(update={"train": train, "data": data}), images(validation=30))
    assert outcome.metrics["round"] == 0
    costs = ("samples", "samples_forward", "floats_up", "floats_down", "floats_buffers")
    assert {name: outcome.metrics[name] for name in costs} == {
        name: outcome.curve[-1][name] for name in costs
    }
    assert outcome.curve[-1]["round"] == ROUNDS


@pytest.mark.parametrize(
    ("method", "copies"), [("fedavg", 1), ("scaffold", 1), ("local_sgdam", 1), ("local_scgdam", 2)]
)
def test_running_statistics_are_counted_apart(method: str, copies: int) -> None:
    run = spec(method, network="resnet20", options={"blocks": 1}, rounds=2)
    simulation, outcome = simulate(run, images(side=8))
    net = simulation.problem.net
    assert outcome.curve[-1]["floats_buffers"] == 2 * copies * net.n_buffers > 0
    assert outcome.curve[-1]["floats_up"] == 2 * PER_ROUND[method](net.d)[0]


def test_running_statistics_are_those_of_who_takes_part() -> None:
    some = {"rule": "random", "clients": 2}
    run = spec("fedavg", network="resnet20", options={"blocks": 1}, rounds=1, participation=some)
    simulation, outcome = simulate(run, images(side=8))
    assert outcome.curve[-1]["floats_buffers"] == pytest.approx(2 / 3 * simulation.problem.net.n_buffers)


def test_no_restart_costs_nothing() -> None:
    run = spec("coda", {"restart_samples": 0}, decay_at=[0.5], rounds=4)
    simulation, outcome = simulate(run, images())
    assert outcome.curve[-1]["floats_up"] == 4 * (simulation.problem.net.d + 3)


def test_an_average_anchor_has_to_be_sent() -> None:
    """To those who take part; the first one is the initial model."""
    run = spec("codasca", {"anchor": "average"}, decay_at=[0.5], rounds=4)
    simulation, outcome = simulate(run, images())
    d = simulation.problem.net.d
    assert outcome.curve[-1]["floats_down"] == 4 * 2 * (d + 3) + d + 2
    assert outcome.curve[-1]["floats_up"] == 4 * 2 * (d + 3)


def test_an_anchor_of_ones_own_is_sent_to_those_alone_who_come_after_the_first_round() -> None:
    """The initial model, once a run."""
    how = {"decay_at": [0.5, 0.75], "rounds": ROUNDS, "participation": TURNS["some"]}
    run = spec("codasca", {"anchor": "own_average"}, clients=N, **how)
    simulation, outcome = simulate(run, images(SIZES))
    d, rounds = simulation.problem.net.d, present(simulation, ROUNDS)
    visits, newcomers = sum(map(len, rounds)), len({*chain(*rounds)} - {*rounds[0]})
    assert newcomers
    assert outcome.curve[-1]["floats_down"] * N == pytest.approx(visits * 2 * (d + 3) + newcomers * (d + 2))
    assert outcome.curve[-1]["floats_up"] * N == pytest.approx(visits * 2 * (d + 3))
