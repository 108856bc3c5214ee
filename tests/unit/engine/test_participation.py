"""Who takes part: uniform, without replacement, from a stream of its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from fedbench.engine.participation import participants
from fedbench.engine.streams import stream
from fedbench.errors import UserError
from fedbench.specs import ParticipationSpec

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

    def draw() -> list[tuple[int, ...]]:
        return [tuple(stream(seed, what, *ids).integers(2**60, size=2)) for seed, what, *ids in names]

    assert len(set(draw())) == len(names)
    assert draw() == draw()
