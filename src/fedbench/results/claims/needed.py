"""How many seeds a claim needs: the procedure that judges it, simulated."""

from __future__ import annotations

import math

import numpy as np

from fedbench.results.claims.judge import FEWEST, OPEN, Verdict, places_with_enough_seeds
from fedbench.results.claims.rules import Rule, p_support
from fedbench.results.statistics import EXACT, LEVEL, POWER, Array

DRAWS = 200
MOST = EXACT
"""More seeds are not tried."""


def seeds_needed(values: Array, rule: Rule, judged: Verdict) -> float:
    """Return the fewest seeds that support a claim with power .8 where its effects are the smallest that matter.

    That is ``matters`` above the margin, or no difference at all where a margin is what is claimed (no worse, equal):
    never the effect that was seen. Places that are open get it, with the spread of their seeds; for a majority those
    that are won or lost keep what they showed, for `all` they have no part in it.

    Args:
        values: [components, places, seeds] as :func:`~fedbench.results.claims.judge.verdict` judged them.
        rule: what is asked.
        judged: the verdict on them.

    Returns:
        Infinite beyond :data:`MOST`; NaN where nothing says what matters, or a spread is unknown.
    """
    bounded = rule.form in ("no_worse", "equal")
    if rule.form in ("trend", "ratio", "exists") or not (rule.matters or bounded) or values.shape[-1] < 2:
        return math.nan
    values = values[:, places_with_enough_seeds(values)]
    still = np.array([outcome == OPEN for outcome in judged.outcomes])
    if rule.holds == "all" and still.any():
        values, still = values[:, still], still[still]
    elif rule.holds == "average":
        values, still = values.mean(1, keepdims=True), np.array([True])
    known = np.where(np.isfinite(values), values, np.nan)
    if ((~np.isnan(known)).sum(-1) < 2).any():
        return math.nan
    sd, mean = np.nanstd(known, axis=-1, ddof=1), np.nanmean(known, axis=-1)
    mean = np.where(still, 0.0 if bounded else rule.margin + rule.matters, mean)
    noise = np.random.default_rng(0).normal(size=(*sd.shape, DRAWS, MOST))
    draws = mean[..., None, None] + sd[..., None, None] * noise
    for seeds in range(FEWEST, MOST + 1):
        # where the t-test alone lacks power, its confirmation by flips, which takes longer, does too
        if all(
            (p_support(draws[..., :seeds], rule, exact=exact) <= LEVEL).mean() >= POWER
            for exact in (False, True)
        ):
            return seeds
    return math.inf
