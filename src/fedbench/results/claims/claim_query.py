"""A claim as it is asked of numbers: its metric, places, methods and rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.metric_table import Measure
from fedbench.results.claims.effects import Effects, effects
from fedbench.results.claims.judge import Verdict, verdict
from fedbench.results.claims.rules import Rule
from fedbench.results.places import Place, places_of, shown
from fedbench.results.statistics import least_spread
from fedbench.study.claims import ClaimSpec
from fedbench.study.schema import Paper, Value


class Question:
    """A claim of a study, to be asked of any frame of numbers.

    Attributes:
        claim: what the configuration says of it.
        metric: whose values it compares.
        measure: what is known of the metric that its rule is about.
        rule: what the arithmetic is asked.
        places: where its tables and figures show numbers.
        methods: those that they show.
    """

    def __init__(self, claim: ClaimSpec, paper: Paper) -> None:
        """Read the claim of a study."""
        self.claim, self.metric = claim, asked(claim)
        self.measure = paper.measure(claim.metric)
        self.rule = rule_of(claim, self.measure)
        self.places = places_of(paper, claim.targets)
        self.methods = list(
            dict.fromkeys(m for target in claim.targets for m in shown(paper, target).methods)
        )

    def effects(self, numbers: pd.DataFrame, places: Sequence[Place]) -> Effects:
        """Compare numbers of its metric at some places."""
        return effects(self.claim, self.measure, places, self.methods, numbers)

    def verdict(self, effects: Effects, numbers: pd.DataFrame) -> Verdict:
        """Judge effects that were read from ``numbers``, whose values bound the step of the metric on each dataset.

        Of a dataset the closest bound of its places counts, of all datasets the coarsest. The largest setting moves in
        the steps of its logarithm. What has no ends moves in no steps, nor does the logarithm of a cost.
        """
        least, ends, read = dict[Value, float](), self.measure.ends, numbers.iloc[effects.read]
        if self.claim.ratio and (axis := self.claim.ratio.largest):
            tried = {float(dict(place)[axis]) for place in self.places}
            least[axis] = least_spread(np.log(sorted(tried)))
        elif ends and self.rule.form != "ratio":
            at: dict[Place, list[float]] = {}
            for place, value in zip(read["place"], read["value"], strict=True):
                at.setdefault(place, [*ends]).append(value)
            for (first, *_), values in at.items():
                least[first[1]] = min(least.get(first[1], math.inf), least_spread(values))
        return verdict(effects.values, replace(self.rule, least=max(least.values(), default=0.0)))


def rule_of(claim: ClaimSpec, measure: Measure) -> Rule:
    """Return what the arithmetic is asked for a claim."""
    if claim.ratio:
        bound = claim.ratio.at_least or 1 / (claim.ratio.at_most or math.inf)
        return Rule("ratio", math.log(bound))
    form = claim.comparison or claim.trend
    return Rule(
        claim.form, form.margin if form else 0.0, measure.matters, "some" if claim.exists else claim.holds
    )


def asked(claim: ClaimSpec) -> str:
    """Name the metric whose values a claim compares: what runs end with, a mean over curves, or a cost."""
    if (form := claim.comparison or claim.trend) and form.over == "curve":
        return metric_table.over_curve(claim.metric)
    if claim.ratio and claim.ratio.needs:
        spent = next(name for name, column in metric_table.SPENT.items() if column == claim.ratio.needs)
        targets = [metric_table.rounds_to(metric, value, spent) for metric, value in claim.ratio.to.items()]
        return targets[0] if targets else claim.ratio.needs
    return claim.metric
