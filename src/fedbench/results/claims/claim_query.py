"""A claim as it is asked of numbers: its metric, places, methods and rule; and whether longer training would tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.metric_table import Measure
from fedbench.results.claims.effects import Effects, effects
from fedbench.results.claims.judge import Verdict, means_agree, places_with_enough_seeds, verdict
from fedbench.results.claims.rules import Rule
from fedbench.results.frame import COSTS
from fedbench.results.places import Place, places_of, shown
from fedbench.results.run_facts import PARTS
from fedbench.results.statistics import least_spread
from fedbench.study.claims import ClaimSpec
from fedbench.study.schema import Paper


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

    def verdict(self, effects: Effects) -> Verdict:
        """Judge effects; the values that they were read from bound the step of the metric on each dataset.

        Of a dataset the closest bound of its places counts, of all datasets the coarsest. The largest setting moves in
        the steps of its logarithm. What has no ends moves in no steps, nor does the logarithm of a cost.
        """
        least, ends, read = 0.0, self.measure.ends, effects.read
        if self.claim.ratio and (axis := self.claim.ratio.largest):
            tried = {float(dict(place)[axis]) for place in self.places}
            least = least_spread(np.log(sorted(tried)))
        elif ends and self.rule.form != "ratio" and len(read):
            values = read.groupby(["place", "metric"], sort=False)["value"]
            steps = values.transform(lambda of_place: least_spread([*ends, *of_place]))
            least = float(steps.groupby([place[0][1] for place in read["place"]]).min().max())
        return verdict(effects.values, replace(self.rule, least=least))

    def agrees_after_longer(
        self, numbers: pd.DataFrame, places: Sequence[Place], effects: Effects
    ) -> bool | None:
        """Say whether the means lean as the ``effects`` of ``numbers`` do after as long a training again.

        None where the pace is not known of all places that count, or the metric is not what a run ends with.
        """
        if not is_end(self.metric):
            return None
        after = self.effects(longer(numbers, self.measure), places)
        known = ~np.isnan(after.values).any(0).all(-1)
        if (places_with_enough_seeds(effects.values) & ~known).any():
            return None
        shared = [at for at, seed in enumerate(effects.seeds) if seed in after.seeds]
        now = effects.values[:, :, shared] if shared else effects.values
        leans, then = (means_agree(values[:, known], self.rule) for values in (now, after.values))
        return None if leans is None or then is None else leans == then


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


def is_end(metric: str) -> bool:
    """Say whether a metric is what a run ends with: no cost, and nothing that is read off its curve."""
    return metric not in COSTS and not metric_table.target(metric) and not metric_table.curve_mean(metric)


def longer(numbers: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return numbers of one metric as if runs had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """
    moved = (numbers["value"] + PARTS * numbers["pace"]).clip(measure.low, measure.high)
    return numbers.assign(value=numbers["value"].where(np.isinf(numbers["value"]), moved))
