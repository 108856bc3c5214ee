"""Who takes part and when: draws, groups, cycles, stages, and the choice of the reported row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from world import CPU, METHODS, images, same, simulate, spec

from fedbench.algorithms import coda
from fedbench.engine.schedule import groups, participants
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.problem import Problem, State, Turn
from fedbench.random import stream
from fedbench.spec import ParticipationSpec

RANDOM = ParticipationSpec(rule="random", clients=5)


def test_draws_are_uniform_over_clients_and_pairs() -> None:
    rounds, n, k = 4000, 20, 5
    drawn = [participants(RANDOM, n, r, seed=0) for r in range(rounds)]
    counts = np.bincount(np.concatenate(drawn), minlength=n)
    expected = rounds * k / n
    # counts of draws without replacement vary less than Poisson counts, by the factor 1 - k/n (and n-1 are free)
    statistic = ((counts - expected) ** 2 / expected).sum() / (1 - k / n)
    assert chi2.cdf(statistic, n - 1) < 0.999
    assert chi2.cdf(statistic, n - 1) > 0.001  # nor suspiciously even
    together = sum(0 in chosen and 1 in chosen for chosen in drawn) / rounds
    assert together == pytest.approx(k * (k - 1) / (n * (n - 1)), abs=0.01)


def test_every_round_has_distinct_clients_in_order() -> None:
    for r in range(50):
        chosen = participants(RANDOM, 7, r, seed=3)
        assert len(set(chosen)) == 5 and chosen == sorted(chosen) and set(chosen) <= set(range(7))
    assert participants(ParticipationSpec(), 3, 9, seed=3) == [0, 1, 2]
    assert participants(RANDOM, 5, 0, seed=3) == [0, 1, 2, 3, 4]


def test_draws_depend_on_seed_and_round_alone() -> None:
    rounds = [participants(RANDOM, 30, r, seed=0) for r in range(10)]
    assert rounds == [participants(RANDOM, 30, r, seed=0) for r in range(10)]
    assert len({tuple(chosen) for chosen in rounds}) == 10
    assert rounds != [participants(RANDOM, 30, r, seed=1) for r in range(10)]


def test_more_participants_than_clients_is_an_error() -> None:
    with pytest.raises(UserError, match=r"participation\.clients is 5, but there are only 4 clients"):
        participants(RANDOM, 4, 0, seed=0)


def test_streams_differ_in_every_coordinate_and_repeat() -> None:
    names = [(0, "a", 0, 0), (1, "a", 0, 0), (0, "b", 0, 0), (0, "a", 1, 0), (0, "a", 0, 1), (0, "a", 1, 1)]
    first, again = ([stream(seed, *of).integers(2**60) for seed, *of in names] for _ in range(2))
    assert len({*first}) == len(names) and first == again


class TestCyclic:
    @staticmethod
    def rule(clients: int, groups: int) -> ParticipationSpec:
        return ParticipationSpec(rule="cyclic", clients=clients, groups=groups)

    def test_groups_are_disjoint_whole_and_of_equal_size_but_for_one(self) -> None:
        result = groups(self.rule(2, 5), 23, seed=4)
        assert sorted(client for group in result for client in group) == list(range(23))
        assert sorted(map(len, result)) == [4, 4, 5, 5, 5] and all(group == sorted(group) for group in result)
        assert result != groups(self.rule(2, 5), 23, seed=5)
        assert result[0] != list(range(5))  # dealt, not cut

    def test_groups_take_turns_in_one_order(self) -> None:
        of = {client: i for i, group in enumerate(groups(self.rule(3, 4), 18, 0)) for client in group}
        for r in range(20):
            chosen = participants(self.rule(3, 4), 18, r, 0)
            assert {of[client] for client in chosen} == {r % 4} and len(set(chosen)) == 3

    @pytest.mark.parametrize("clients", [2, 7])
    def test_one_group_is_the_random_draw(self, clients: int) -> None:
        drawn = ParticipationSpec(rule="random", clients=clients)
        for r in range(30):
            assert participants(self.rule(clients, 1), 7, r, 3) == participants(drawn, 7, r, 3)

    def test_whole_groups_have_each_client_once_a_cycle(self) -> None:
        for cycle in range(3):
            rounds = [participants(self.rule(4, 5), 20, 5 * cycle + turn, 1) for turn in range(5)]
            assert sorted(client for chosen in rounds for client in chosen) == list(range(20))

    def test_draws_inside_a_group_are_uniform(self) -> None:
        rule, n, cycles = self.rule(3, 4), 40, 1500
        for turn, group in enumerate(groups(rule, n, 0)):
            drawn = [participants(rule, n, 4 * c + turn, 0) for c in range(cycles)]
            counts = np.bincount(np.concatenate(drawn), minlength=n)[group]
            expected = cycles * 3 / len(group)
            statistic = ((counts - expected) ** 2 / expected).sum() / (1 - 3 / len(group))
            assert 0.0005 < chi2.cdf(statistic, len(group) - 1) < 0.9995


SIZES = (20, 26, 31, 12, 9, 17)
CYCLES: dict[str, Any] = {
    "rounds": None,
    "cycles": 6,
    "participation": {"rule": "cyclic", "clients": 1, "groups": 3},
}


def schedule(**train: Any) -> Any:
    return Simulation(spec(clients=6, **train), images(SIZES), CPU).schedule


class TestLength:
    @pytest.mark.parametrize(
        ("train", "rounds"),
        [
            ({"iterations": 4}, 1),
            ({"iterations": 5}, 2),  # the last round is made whole
            ({"iterations": 8}, 2),
            ({"epochs": 2.5, "batch_size": 5}, 4),  # the largest client: 31 // 5 = 6 batches an epoch
            ({"epochs": 0.5, "period": 1}, 2),
            ({"rounds": 3}, 3),
        ],
    )
    def test_rounds_are_counted(self, train: dict[str, Any], rounds: int) -> None:
        assert schedule(**{"rounds": None, "period": 4, **train}).rounds == rounds

    def test_less_than_a_period_is_an_error(self) -> None:
        with pytest.raises(UserError, match="3 iterations are fewer than one communication period of 4"):
            schedule(rounds=None, iterations=3, period=4)

    def test_steps_fall_neither_before_the_first_round_nor_after_the_last(self) -> None:
        assert schedule(rounds=10, decay_at=[0.01, 0.5, 0.99]).stages == [1, 5]


class TestCycles:
    @pytest.mark.parametrize(
        ("turns", "evaluations", "evaluated"),
        [
            (CYCLES["participation"], 4, {0, 6, 9, 12, 18}),
            ({"rule": "random", "clients": 2, "groups": 3}, 2, {0, 9, 18}),
        ],
    )
    def test_length_and_evaluations_are_whole_cycles(
        self, turns: dict[str, Any], evaluations: int, evaluated: set[int]
    ) -> None:
        result = schedule(**CYCLES | {"participation": turns}, evaluations=evaluations)
        assert result.rounds == 18 and result.evaluated == evaluated
        at = [result.turn(r) for r in range(4)]
        assert [turn.number for turn in at] == [0, 0, 0, 1]
        assert [turn.begins for turn in at] == [True, False, False, True]
        assert [turn.ends for turn in at] == [False, False, True, False]
        assert Turn(5).begins and Turn(5).ends and Turn(5).number == 5  # without groups each round is one

    def test_rounds_that_end_in_mid_cycle_are_an_error(self) -> None:
        with pytest.raises(UserError, match="10 rounds are not a whole number of cycles of 3"):
            schedule(**CYCLES | {"cycles": None, "rounds": 10})

    @pytest.mark.parametrize("method", METHODS)
    def test_one_group_is_random_participation_bit_for_bit(self, method: str) -> None:
        ways = [{"rule": "cyclic", "clients": 2, "groups": 1}, {"rule": "random", "clients": 2}]
        first, other = (
            simulate(spec(method, clients=6, rounds=5, participation=way), images(SIZES))[0] for way in ways
        )
        torch.testing.assert_close(first.server, other.server, rtol=0, atol=0, equal_nan=True)

    def test_methods_are_told_where_in_the_cycle_they_are(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[tuple[int, bool]] = []
        begin = FederatedMethod.begin

        def spy(self: Any, problem: Problem, state: State) -> State:
            seen.append((problem.cycle.number, problem.cycle.ends))
            assert state["round"].tolist() == [problem.cycle.round]
            assert state["client"].tolist() == problem.participants(problem.cycle.round)  # type: ignore[misc]
            return begin(self, problem, state)

        monkeypatch.setattr(FederatedMethod, "begin", spy)
        simulate(spec(clients=6, **CYCLES | {"cycles": 2}), images(SIZES))
        assert seen == [(0, False), (0, False), (0, True), (1, False), (1, False), (1, True)]


class TestStages:
    def test_every_so_many_iterations(self) -> None:
        """A round of 4 in which a stage ends still belongs to it."""
        result = schedule(rounds=10, stage_every=16, stage_factor=0.5)
        assert result.stages == [4, 8]
        assert [result.decay(r) for r in (0, 3, 4, 7, 8, 9)] == [1, 1, 0.5, 0.5, 0.25, 0.25]
        assert schedule(rounds=10, stage_every=10, stage_factor=0.5).stages == [3, 5, 8]

    def test_growing_stages_are_counted_in_cycles_or_rounds(self) -> None:
        stages = {"first": 10, "scale": 2, "factor": 0.1}
        assert schedule(rounds=100, stages=stages).stages == [10, 30, 70]
        result = schedule(**CYCLES | {"cycles": 100}, stages=stages)
        assert result.stages == [30, 90, 210] and result.decay(90) == pytest.approx(0.01)
        assert schedule(rounds=7, stages={"first": 3, "factor": 0.1}).stages == [3, 6]

    def test_codas_program_triples_its_stages_and_takes_a_third_of_its_steps(self) -> None:
        """DistributedAUC 30f052a, imagenet/main.py 202-203, s from 1."""
        result = schedule(rounds=130, stages={"first": 3, "scale": 3, "factor": 1 / 3})
        expected = [0.1 * (1 / 3) ** (s - 1) for s in (1, 2, 3, 4) for _ in range(3 * 3 ** (s - 1))]
        assert [0.1 * result.decay(r) for r in range(120)] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("rule", ["cyclic", "random"])
    @pytest.mark.parametrize(
        ("cycles", "groups", "begins"),
        [
            (100, 10, [100, 300, 700]),  # whole cycles by themselves
            (25, 10, [20, 80, 180]),  # 2.5, 7.5 and 17.5 cycles: cycp's figure 1 at I = 128
            (25, 40, [80, 320, 720]),  # its figure 3 at K = 40
            (1, 10, []),  # nothing is left after the only cycle
        ],
    )
    def test_stages_begin_with_a_cycle(self, rule: str, cycles: int, groups: int, begins: list[int]) -> None:
        turns = {"rule": rule, "clients": 1, "groups": groups}
        run = spec(clients=40, rounds=None, cycles=cycles, participation=turns, decay_at=[0.1, 0.3, 0.7])
        assert Simulation(run, images((5,) * 40), CPU).schedule.stages == begins

    def test_iterations_that_end_in_mid_cycle_end_their_stage_with_it(self) -> None:
        result = schedule(**CYCLES, stage_every=16, stage_factor=0.5)  # 4 rounds, of cycles of 3
        assert result.stages == [6, 9, 12]

    @pytest.mark.parametrize(
        ("train", "says"),
        [
            ({"stage_every": 2, "stage_factor": 0.5}, "two stages begin in round 1"),
            ({"stage_every": 40, "stage_factor": 0.5}, "first stage ends with the run or later"),
            ({"stage_every": 38, "stage_factor": 0.5}, "first stage ends with the run or later"),
            ({"stages": {"first": 10, "factor": 0.5}}, "first stage ends with the run or later"),
        ],
    )
    def test_stages_that_do_not_fit_are_errors(self, train: dict[str, Any], says: str) -> None:
        with pytest.raises(UserError, match=says):
            schedule(rounds=10, **train)

    @pytest.mark.parametrize(
        "train", [{"stage_every": 16, "stage_factor": 0.5}, {"stages": {"first": 4, "factor": 0.5}}]
    )
    def test_methods_see_them_as_they_see_decays(
        self, train: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The anchor of CODA moves at each, and the run is that of the same decays."""
        calls: list[int] = []
        original = coda.Method.new_stage

        def spy(self: Any, problem: Problem, server: State) -> State:
            calls.append(problem.cycle.round)
            return original(self, problem, server)

        monkeypatch.setattr(coda.Method, "new_stage", spy)
        trained, _ = simulate(spec("coda", rounds=10, **train), images())
        assert calls == [4, 8]
        usual, _ = simulate(spec("coda", rounds=10, decay_at=[0.4, 0.8], decay_factor=0.5), images())
        assert same(trained.server, usual.server)


class TestSelection:
    def test_the_first_best_row_by_validation_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever the test set says; of equals the first."""
        scores = {"val_auc": [0.5, 0.7, 0.8, 0.8, 0.6], "test_auc": [0.9, 0.1, 0.2, 0.95, 0.99]}
        outcome = self.run_with(scores, "val_auc", monkeypatch)
        assert outcome.metrics["round"] == 2 and outcome.metrics["test_auc"] == 0.2
        assert len(outcome.curve) == 5 and "device_mean_test_auc" not in outcome.metrics
        assert self.run_with(scores, None, monkeypatch).metrics["val_auc"] == 0.6, "without a choice the last"

    def test_lower_is_better_where_the_table_of_metrics_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = self.run_with({"val_loss": [3.0, 2.0, 1.0, 1.5, 1.0]}, "val_loss", monkeypatch)
        assert outcome.metrics["round"] == 2

    def test_a_metric_that_is_not_measured_or_undefined_is_an_error_before_training(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(UserError, match=r"unknown metric on validation data .*'val_aux'.*val_auc"):
            self.run_with({"val_auc": [0.5]}, "val_aux", monkeypatch)
        with pytest.raises(UserError, match="val_auc is undefined on this validation part"):
            self.run_with({"val_auc": [math.nan]}, "val_auc", monkeypatch)

    @staticmethod
    def run_with(scores: dict[str, list[float]], select: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Train four rounds whose evaluations find the given scores."""
        run = spec(rounds=4, evaluations=4)
        data = run.data.model_copy(update={"validation": 0.2})
        run = run.model_copy(update={"data": data, "train": run.train.model_copy(update={"select": select})})
        simulation, at = Simulation(run, images(validation=12), CPU), iter(range(5))

        def counted(*args: Any, **named: Any) -> dict[str, float]:
            now = next(at)
            return {name: values[now] for name, values in scores.items()}

        monkeypatch.setattr(simulation.evaluator, "metrics", counted)
        monkeypatch.setattr(simulation.evaluator, "spread", lambda clients: {"device_mean_test_auc": 0.5})
        return simulation.run()
