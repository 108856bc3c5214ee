"""Who takes part: uniform, without replacement, from a stream of its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from fedbench.engine.participation import groups, participants
from fedbench.errors import UserError
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

    @pytest.mark.parametrize(
        ("clients", "of", "n", "says"),
        [
            (5, 3, 12, "the smallest of 3 groups has only 4"),
            (1, 13, 12, "groups is 13, but there are only 12"),
        ],
    )
    def test_too_few_clients_are_an_error(self, clients: int, of: int, n: int, says: str) -> None:
        with pytest.raises(UserError, match=says):
            participants(self.rule(clients, of), n, 0, 0)
