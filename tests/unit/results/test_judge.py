"""Verdicts on literal arrays: by hand and against SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedbench.results.claims.judge import (
    CONTRADICTED,
    LOST,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    SUPPORTED,
    UNDECIDED,
    UNSUPPORTED,
    WON,
    effect,
    places_with_enough_seeds,
    verdict,
)
from fedbench.results.claims.rules import Rule, averaged, p_values

BETTER = Rule("better", matters=0.005)
NAN = math.nan


class TestByHand:
    """Three seeds have t = 2.92 at one-sided level .05; mean .02 and sd .01 give .02 +- 2.92 * .01 / sqrt(3)."""

    def test_interval_of_three_seeds(self) -> None:
        summary = effect(np.array([0.01, 0.02, 0.03]))
        assert summary.mean == pytest.approx(0.02)
        assert summary.sd == pytest.approx(0.01)
        half = 2.919986 * 0.01 / math.sqrt(3)
        assert (summary.low, summary.high) == (pytest.approx(0.02 - half), pytest.approx(0.02 + half))

    @pytest.mark.parametrize(
        ("rule", "seeds", "kind"),
        [
            (BETTER, [0.01, 0.02, 0.03], SUPPORTED),  # L = .0031
            (Rule("better", margin=0.005), [0.01, 0.02, 0.03], UNDECIDED),  # L below the margin, U = .037
            (BETTER, [-0.01, -0.02, -0.03], CONTRADICTED),
            (BETTER, [-0.001, 0.0, 0.001], UNSUPPORTED),  # U = .0017 < .005: no difference that matters
            (Rule("better"), [-0.001, 0.0, 0.001], UNDECIDED),  # nothing says what matters
            (BETTER, [-0.01, 0.0, 0.01], UNDECIDED),
            (Rule("better", margin=0.05, matters=0.005), [0.01, 0.02, 0.03], UNSUPPORTED),  # U = .037 < .05
            (Rule("no_worse", margin=0.005), [-0.001, 0.0, 0.001], SUPPORTED),  # L = -.0017
            (Rule("no_worse", margin=0.001), [-0.001, 0.0, 0.001], UNDECIDED),
            (Rule("no_worse", margin=0.005), [-0.01, -0.02, -0.03], UNDECIDED),  # U = -.0031
            (Rule("no_worse", margin=0.002), [-0.01, -0.02, -0.03], CONTRADICTED),
            (Rule("equal", margin=0.002), [-0.001, 0.0, 0.001], SUPPORTED),
            (Rule("equal", margin=0.001), [-0.001, 0.0, 0.001], UNDECIDED),
            (Rule("equal", margin=0.002), [0.01, 0.02, 0.03], CONTRADICTED),
            (Rule("equal", margin=0.002), [-0.01, -0.02, -0.03], CONTRADICTED),
            (BETTER, [0.1, 0.1, 0.1], SUPPORTED),  # no spread at all
            (BETTER, [0.0, 0.0, 0.0], UNSUPPORTED),
        ],
    )
    def test_kinds_at_three_seeds(self, rule: Rule, seeds: list[float], kind: str) -> None:
        assert verdict([[seeds]], rule).kind == kind

    def test_one_and_two_seeds_never_decide(self) -> None:
        first = verdict([[[0.3], [0.2], [-0.1]]], BETTER)
        assert (first.kind, first.shown, len(first.outcomes), first.seeds) == (UNDECIDED, 1, 3, 1)
        assert (first.overall.low, first.overall.high) == (-math.inf, math.inf)
        two = verdict([[[0.3, 0.300001]]], BETTER)
        assert two.kind == UNDECIDED and 0.29 < two.overall.low < two.overall.high < 0.31

    def test_nothing_run(self) -> None:
        assert verdict([[[NAN, NAN]]], BETTER).kind == NOT_RUN
        assert verdict(np.full((1, 0, 3), NAN), BETTER).kind == NOT_RUN
        half = [[[0.1, 0.2, 0.3]], [[NAN, NAN, NAN]]]  # a rival without runs
        assert verdict(half, BETTER).kind == NOT_RUN

    def test_places_are_averaged_within_a_seed(self) -> None:
        """Two places that fluctuate against each other: the seeds' averages are .02, .02, .021."""
        judged = verdict([[[0.30, -0.26, 0.0], [-0.26, 0.30, 0.042]]], BETTER)
        assert judged.kind == SUPPORTED
        assert judged.overall.sd == pytest.approx(np.std([0.02, 0.02, 0.021], ddof=1))
        every = verdict([[[0.30, -0.26, 0.0], [-0.26, 0.30, 0.042]]], Rule("better", holds="all"))
        assert every.kind == UNDECIDED

    def test_a_seed_that_one_place_lacks_is_left_out_of_the_average(self) -> None:
        judged = verdict([[[0.01, 0.02, 0.03, 0.9], [0.01, 0.02, 0.03, NAN]]], BETTER)
        assert (judged.seeds, judged.overall.mean) == (3, pytest.approx(0.02))

    def test_every_rival_has_to_be_beaten(self) -> None:
        ahead, behind = [[0.1, 0.11, 0.12]], [[-0.001, 0.001, 0.0]]
        assert verdict([ahead, ahead], BETTER).kind == SUPPORTED
        both = verdict([ahead, behind], BETTER)
        assert both.kind == UNSUPPORTED
        assert both.overall.mean == pytest.approx(0.0), "the effect shown is that over the nearest rival"

    def test_all_some_and_contradictions_among_many(self) -> None:
        clear, close = [0.1, 0.11, 0.12], [-0.01, 0.0, 0.01]
        every, some = Rule("better", matters=0.005, holds="all"), Rule("better", matters=0.005, holds="some")
        assert verdict([[clear, clear]], every).kind == SUPPORTED
        assert verdict([[clear, close]], every).kind == UNDECIDED
        assert verdict([[clear, close]], some).kind == SUPPORTED
        barely = [0.01, 0.02, 0.03]  # p = .037: enough alone, not as the best of two (Holm: .074)
        assert verdict([[barely]], some).kind == SUPPORTED
        judged = verdict([[barely, close]], some)
        assert (judged.kind, judged.p) == (UNDECIDED, pytest.approx(2 * stats.t.sf(math.sqrt(12), 2)))
        lost = [-0.01, -0.02, -0.03]
        assert verdict([[lost]], every).kind == CONTRADICTED
        among = p_values(np.array([[clear, lost]]), every)
        assert among[1] == pytest.approx(2 * stats.t.sf(math.sqrt(12), 2)), "one loss in two is p = .074 only"
        assert verdict([[clear, lost]], every).kind == UNDECIDED
        tiny = [0.0, 0.0001, -0.0001]
        assert verdict([[clear, tiny]], every).kind == UNSUPPORTED, (
            "one place where nothing matters is enough"
        )
        assert verdict([[tiny] * 40], every).kind == UNSUPPORTED
        assert verdict([[lost, lost]], some).kind == CONTRADICTED

    def test_effects_spread_by_the_step_of_the_metric_at_least(self) -> None:
        """Three seeds that are all 0.02 ahead, with steps of 0.01: t = 0.02 / 0.0041 sqrt(3), not infinite."""
        least = 0.01 * (2 / 12) ** 0.5
        judged = verdict([[[0.02] * 3]], Rule("better", least=least))
        t = 0.02 / least * 3**0.5
        assert judged.p == pytest.approx(stats.t.sf(t, 2)) and judged.kind == SUPPORTED
        half = stats.t.ppf(0.95, 2) * least / 3**0.5
        assert (judged.overall.low, judged.overall.high) == pytest.approx((0.02 - half, 0.02 + half))
        assert verdict([[[0.005] * 3]], Rule("better", least=least)).kind == UNDECIDED

    def test_an_average_is_asked_once_and_places_apart(self) -> None:
        """0.03 and 0.02 lower: the average shows it, one of two places does."""
        effects = [[[0.03] * 3, [-0.02] * 3]]
        for holds, shown, asked in (("average", 1, 1), ("all", 1, 2), ("most", 1, 2)):
            judged = verdict(effects, Rule("better", holds=holds))  # type: ignore[arg-type]
            assert (judged.shown, judged.asked) == (shown, asked)
        assert verdict([[[0.03] * 3, [-0.04] * 3]], Rule("better")).shown == 0

    def test_most_is_a_partial_conjunction(self) -> None:
        """Two of three places: twice the second smallest p."""
        most = Rule("better", matters=0.005, holds="most")
        win, lose, close = [0.1, 0.11, 0.12], [-0.1, -0.11, -0.12], [-0.01, 0.0, 0.01]
        assert verdict([[win, win, lose]], most).kind == SUPPORTED
        assert verdict([[win, lose, lose]], most).kind == CONTRADICTED
        assert verdict([[win, lose]], most).kind == CONTRADICTED, "half of two is no majority"
        assert verdict([[win, close, close]], most).kind == UNDECIDED
        barely = [0.01, 0.02, 0.03]  # p = .037
        judged = verdict([[win, barely, lose]], most)
        assert (judged.kind, judged.p) == (UNDECIDED, pytest.approx(2 * stats.t.sf(math.sqrt(12), 2)))
        assert verdict([[win, win, barely]], most).kind == SUPPORTED
        rivals = verdict([[win, win, win], [win, lose, lose]], most)
        assert (rivals.kind, rivals.outcomes) == (CONTRADICTED, [WON, LOST, LOST]), "won is over all rivals"
        assert (rivals.at, rivals.against) == (1, 1)

    def test_what_is_shown_is_what_was_judged(self) -> None:
        """Places by themselves, and the place and rival on which the verdict hangs."""
        every = Rule("better", matters=0.005, holds="all")
        clear, close, lost = [0.1, 0.11, 0.12], [-0.01, 0.0, 0.01], [-0.1, -0.101, -0.102]
        judged = verdict([[clear, clear, clear], [clear, close, clear]], every)
        assert (judged.kind, judged.outcomes) == (UNDECIDED, [WON, OPEN, WON])
        assert (judged.at, judged.against) == (1, 1)
        assert judged.decides == effect(np.array(close))
        judged = verdict([[clear, close, lost], [clear, clear, clear]], every)
        assert (judged.kind, judged.at, judged.against, judged.count(LOST)) == (CONTRADICTED, 2, 0, 1)
        full = verdict([[clear, close], [close, close]], Rule("better", matters=0.005))
        assert (full.at, full.against, full.decides) == (None, 1, full.overall)
        # the first has the smaller mean, the second the larger p
        least, spread = [0.01, 0.011, 0.012], [0.0, 0.02, 0.1]
        full = verdict([[least], [spread]], Rule("better", matters=0.005))
        assert (full.against, full.decides) == (1, effect(np.array(spread)))
        assert full.overall == effect(np.array(least)), "the least of the means"
        some = verdict([[close, clear]], Rule("better", matters=0.005, holds="some"))
        assert (some.at, some.decides.mean) == (1, pytest.approx(0.11))

    def test_a_condition_that_holds_nowhere_is_not_testable(self) -> None:
        exists = Rule("exists", holds="some")
        never, met, so = [-0.2, -0.1, -0.2], [0.05, 0.04, 0.05], [0.3, 0.4, 0.3]
        assert verdict([[never, never], [so, so]], exists).kind == NOT_TESTABLE
        assert verdict([[never, met], [so, so]], exists).kind == SUPPORTED

    def test_a_run_that_diverged_is_no_missing_value(self) -> None:
        """With the claimed method's the place cannot be won; a rival's is won, and counts as the best of the others."""
        every, inf = Rule("better", matters=0.005, holds="all"), math.inf
        clear = [0.1, 0.11, 0.12, 0.1, 0.11]
        lost = verdict([[clear, [-inf, *clear[1:]]]], every)
        assert (lost.kind, lost.outcomes, lost.at, lost.seeds) == (UNDECIDED, [WON, OPEN], 1, 5)
        assert verdict([[clear, [-inf, *clear[1:]]]], Rule("better")).kind == UNDECIDED, "nor on average"
        won = verdict([[clear, [inf, *clear[1:]]]], every)
        assert (won.kind, won.outcomes) == (SUPPORTED, [WON, WON])
        behind = verdict([[[inf, -0.01, -0.011, -0.01, -0.012]]], every)
        assert (behind.kind, behind.outcomes) == (UNDECIDED, [OPEN]), "one seed is no place"
        assert verdict([[[inf] * 3]], every).kind == SUPPORTED
        assert verdict([[[-inf] * 3]], every).kind == CONTRADICTED

    def test_trend(self) -> None:
        """Three seeds that all rise over three levels: 1 of 216 orders is as good; Page's L is 42."""
        rise = [[[0.1, 0.2, 0.1]], [[0.3, 0.4, 0.2]], [[0.5, 0.5, 0.4]]]
        judged = verdict(rise, Rule("trend", matters=0.01))
        assert (judged.kind, judged.p) == (SUPPORTED, pytest.approx(1 / 216))
        assert judged.overall.mean == pytest.approx(1 / 3)  # rises of .4, .3, .3 from first to last
        assert verdict(rise[::-1], Rule("trend", matters=0.01)).kind == CONTRADICTED
        flat = [[[0.1, 0.101, 0.1]], [[0.1, 0.1, 0.101]], [[0.101, 0.1, 0.1]]]
        assert verdict(flat, Rule("trend", matters=0.05)).kind == UNSUPPORTED
        assert verdict(rise[::2], Rule("trend")).kind == SUPPORTED, "two levels are a paired difference"

    def test_ratio(self) -> None:
        four = Rule("ratio", margin=math.log(4))
        exact = [[[math.log(4)] * 3]] * 2
        assert verdict(exact, four).kind == SUPPORTED
        assert verdict([[[math.log(2)] * 3]] * 2, four).kind == UNSUPPORTED
        assert verdict([[[math.log(0.5)] * 3]] * 2, four).kind == CONTRADICTED
        missed = [[[math.log(5), math.log(6), math.log(5)]], [[math.inf] * 3]]  # the rival never got there
        judged = verdict(missed, four)
        assert (judged.kind, judged.overall.high) == (SUPPORTED, math.inf)
        both = [[[-math.inf] * 3], [[math.inf] * 3]]
        assert verdict(both, four).kind == UNDECIDED

    @pytest.mark.parametrize(
        ("costs", "kind"),
        [
            ([1.02, 1.14, 1.06, 1.11, 1.05], UNDECIDED),  # within 1.1 on average, [1.03, 1.12]
            ([0.99, 1.0, 1.02], SUPPORTED),
            ([1.1] * 3, SUPPORTED),
            ([1.3, 1.35, 1.4], CONTRADICTED),
        ],
    )
    def test_a_ratio_may_be_somewhat_above_1(self, costs: list[float], kind: str) -> None:
        at_most = Rule("ratio", margin=math.log(1 / 1.1))
        assert verdict([[-np.log(costs)]] * 2, at_most).kind == kind


def test_a_verdict_is_where_the_interval_ends() -> None:
    """With three and four seeds, supported and L > margin are the same statement."""
    rng = np.random.default_rng(1)
    for seeds, _ in itertools.product((3, 4), range(100)):
        d, margin = rng.normal(0.5, 0.5, seeds), 0.1
        assert (verdict([[d]], Rule("better", margin=margin)).kind == SUPPORTED) == (effect(d).low > margin)


class TestPlacesThatWait:
    """A place with fewer seeds than a verdict needs takes none away from the others."""

    LEAD = [0.01, 0.02, 0.03]

    def test_it_is_left_out_where_others_have_enough(self) -> None:
        values = np.array([[self.LEAD, [-0.5, NAN, NAN], [NAN, NAN, NAN], self.LEAD]])
        judged = verdict(values, Rule("better", matters=0.005, holds="all"))
        assert (judged.kind, len(judged.outcomes), judged.seeds) == (SUPPORTED, 2, 3)
        assert places_with_enough_seeds(values).tolist() == [True, False, False, True]
        assert judged.overall.mean == pytest.approx(0.02)

    def test_seeds_that_a_rival_lacks_do_not_count(self) -> None:
        values = np.array([[self.LEAD, self.LEAD], [self.LEAD, [0.01, 0.02, NAN]]])
        assert places_with_enough_seeds(values).tolist() == [True, False]

    def test_where_none_has_enough_all_count(self) -> None:
        values = np.array([[[0.01, 0.02, NAN], [0.03, NAN, NAN], [NAN, NAN, NAN]]])
        judged = verdict(values, BETTER)
        assert (judged.kind, len(judged.outcomes)) == (UNDECIDED, 2)
        assert places_with_enough_seeds(values).tolist() == [True, True, False]


@pytest.mark.parametrize("holds", ["all", "some"])
@pytest.mark.parametrize("seeds", [3, 4, 5, 6, 8])
def test_seeds_that_are_added_take_no_verdict_away(seeds: int, holds: str) -> None:
    noise = np.random.default_rng(0).normal(0, 0.0003, (4, 3, seeds))
    rule = Rule("better", matters=0.005, holds=holds)
    assert verdict(noise - 0.01, rule).kind == CONTRADICTED
    assert verdict(noise + 0.01, rule).kind == SUPPORTED
    assert verdict(noise, rule).kind == UNSUPPORTED


def test_a_seed_that_is_lost_at_one_place_is_lost_on_average_whatever_is_won_elsewhere() -> None:
    at_places = np.array([[-math.inf, math.inf, 1.0], [math.inf, math.inf, 3.0]])  # [places, seeds]
    bounds = np.broadcast_to(at_places, (2, 1, 2, 3))
    assert averaged(bounds)[0, 0, 0].tolist() == [-math.inf, math.inf, 2.0]


def test_a_rival_that_diverges_at_one_place_does_not_lose_the_others() -> None:
    lost, won = [-0.1, -0.101, -0.102], [math.inf] * 3
    judged = verdict([[lost] * 11 + [won]], BETTER)
    assert (judged.kind, judged.outcomes) == (CONTRADICTED, [LOST] * 11 + [WON])
    assert verdict([[won] * 2], BETTER).kind == SUPPORTED
    gap = np.array([[NAN, 1.0, math.inf], [3.0, 3.0, 4.0]])
    np.testing.assert_array_equal(averaged(gap[None, None].repeat(2, 0))[0, 0, 0], [NAN, 2, 2.5])
    ahead, close = [0.3, 0.31, math.inf], [-0.05, -0.04, -0.05]
    assert verdict([[ahead, close]], BETTER).kind == SUPPORTED, "a rival that diverges takes no support away"
    assert verdict([[[math.inf], [0.01]]], Rule("better", holds="all")).decides.mean == 0.01, "with one seed"


def test_a_component_that_is_lost_in_every_seed_is_the_least() -> None:
    ahead, lost, won = [0.01, 0.02, 0.03], [-math.inf] * 3, [math.inf] * 3
    judged = verdict([[lost], [ahead]], BETTER)
    assert (judged.kind, judged.shown, judged.against) == (CONTRADICTED, 0, 0)
    assert judged.overall == judged.decides and judged.overall.mean == -math.inf
    judged = verdict([[won]], BETTER)
    assert (judged.kind, judged.shown, judged.overall.low) == (SUPPORTED, 1, math.inf)
    assert math.isnan(effect(np.array([math.inf, -math.inf])).mean)
