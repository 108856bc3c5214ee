"""What a claim asks of effects, and the tests that support and contradict it.

The unit is the seed. All methods of a seed share partitions, participants and batches, so effects are paired by seed;
seeds recur at every place (dataset and setting), so effects are averaged over places first: 12 places with 3 seeds are
3 blocks, not 36 repeats. The tests are those of :mod:`fedbench.results.statistics`.

A run that diverged is no missing value: an effect is -inf where the claimed method diverged, so that the seed is lost,
and inf where its rival did, so that it is won.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedbench.results.statistics import ROUNDING, Array, p_above, p_below, partial_conjunction
from fedbench.study.claims import Form

Holds = Literal["all", "average", "most", "some"]


@dataclass(frozen=True)
class Rule:
    """What is asked of the effects.

    ``better``: each is above ``margin``; ``no_worse``: above -margin; ``equal``: within +-margin; ``trend``: values
    rise from level to level, by more than ``margin`` from the first to the last; ``ratio``: logarithms of at least
    ``margin``; ``exists``: as ``better``, in ``some`` place, of two conditions: where, and what holds there.
    ``matters`` is the smallest effect that matters, ``least`` the least spread to be believed in.
    """

    form: Form
    margin: float = 0.0
    matters: float = 0.0
    holds: Holds = "average"
    least: float = 0.0

    def enough(self, places: int) -> int:
        """Return at how many places it has to hold."""
        return {"some": 1, "most": places // 2 + 1}.get(self.holds, places)

    def shown_by(self, effect: float) -> bool:
        """Say whether one effect shows what is claimed, whatever its uncertainty."""
        if self.form == "equal":
            return abs(effect) <= self.margin + ROUNDING
        if self.form == "no_worse":
            return effect > -self.margin - ROUNDING
        return effect > self.margin + (-ROUNDING if self.form == "ratio" else ROUNDING)


def bounds_of(values: Array, rule: Rule) -> Array:
    """Return lower and upper bounds of effects, [2, components, places, ..., seeds].

    Args:
        values: [components, places, ..., seeds]; of a ratio the components are its bounds, of a trend its levels, whose
            effect is the rise from the first to the last that a straight line fits.
        rule: what is asked.
    """
    if rule.form == "ratio":
        return values[:, None]
    if rule.form == "trend":
        x = np.linspace(-0.5, 0.5, len(values))
        values = np.tensordot(x / (x @ x), values, 1)[None]
    return np.broadcast_to(values, (2, *values.shape))


def averaged(bounds: Array) -> Array:
    """Average bounds over places, which become one: over seeds that all places have, NaN elsewhere.

    A seed that is lost somewhere is lost. One that is won at a place, as the rival diverged there, counts there as the
    other seeds do, so that one place does not win them all; a place where no seed has a number is left out.
    """
    won, finite = np.asarray(np.isposinf(bounds).all(0)), np.isfinite(bounds)
    won &= ~won.all(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        usual = np.where(finite, bounds, 0.0).sum(-1, keepdims=True) / finite.sum(-1, keepdims=True)
        filled = np.where(won, usual, bounds)
        mean = filled.mean(2, keepdims=True, where=~(won & np.isnan(usual)))
    lost = np.isneginf(bounds).any(2, keepdims=True) & ~np.isnan(bounds).any(2, keepdims=True)
    return np.where(lost, -np.inf, mean)


def by_place(bounds: Array, rule: Rule) -> Array:
    """Return bounds where the rule is asked: at each place, or of their average."""
    return averaged(bounds) if rule.holds == "average" else bounds


def p_values(values: Array, rule: Rule) -> tuple[Array, Array, Array]:
    """Return the p-values that support, contradict, and tell that the effect is smaller than what matters.

    At each place that counts all components have to hold (intersection-union, each at the level, uncorrected). Of
    places all count, or as many as the rule says (partial conjunction). A claim is lost where so many places fail that
    too few are left. Whatever is searched for among several places or components (one contradiction) is corrected after
    Holm, whose first step is all that the smallest needs.

    Args:
        values: [components, places, ..., seeds] as :func:`bounds_of` takes them; the dots are kept.
        rule: what is asked.
    """
    bounds = bounds_of(values, rule)
    at = by_place(bounds, rule)
    small = _p_lost(at, rule, _p_little)
    if rule.holds == "all" and bounds.shape[2] > 1:  # too small somewhere, or on average
        somewhere, average = (_p_lost(part, rule, _p_little, 2) for part in (bounds, averaged(bounds)))
        small = np.minimum(somewhere, average)
    places = at.shape[2]
    support = partial_conjunction(lambda n: p_holds(at, rule, n).max(0), rule.enough(places), places)
    return support, _p_lost(at, rule, p_fails), small


def _p_lost(bounds: Array, rule: Rule, test: Callable[[Array, Rule, int], Array], ways: int = 1) -> Array:
    """Return the p-values of a test that takes the claim away; ``ways`` in which that is searched for."""
    components, places = bounds.shape[1:3]
    left = places - rule.enough(places) + 1
    return partial_conjunction(lambda n: test(bounds, rule, n * components * ways).min(0), left, places)


def p_holds(bounds: Array, rule: Rule, among: int = 1) -> Array:
    """Return the p-values that effects hold, of bounds [2, ..., seeds] as [...]."""
    (low, high), margin, least = bounds, rule.margin, rule.least
    if rule.form == "equal":
        return np.maximum(p_above(low, -margin, among, least), p_below(high, margin, among, least))
    return p_above(low, -margin if rule.form == "no_worse" else margin - _slack(rule), among, least)


def p_fails(bounds: Array, rule: Rule, among: int = 1) -> Array:
    """Return likewise the p-values that effects contradict the claim."""
    (low, high), margin, least = bounds, rule.margin, rule.least
    if rule.form == "equal":
        return np.minimum(p_above(low, margin, among, least), p_below(high, -margin, among, least))
    # a limit of a ratio may lie on the other side of equality: nothing inside it contradicts
    return p_below(high, -margin if rule.form == "no_worse" else min(margin, 0.0), among, least)


def _p_little(bounds: Array, rule: Rule, among: int) -> Array:
    """Return the p-values that effects are smaller than what matters, 1 where differences are what is denied."""
    if rule.form in ("no_worse", "equal"):
        return np.ones(bounds.shape[1:-1])
    enough = rule.margin if rule.form == "ratio" else max(rule.margin, rule.matters)
    return p_below(bounds[1], enough - _slack(rule), among, rule.least)


def _slack(rule: Rule) -> float:
    """Return by how much a bound is loosened: a ratio of windows is often exactly what is claimed."""
    return ROUNDING if rule.form == "ratio" else 0.0
