"""Other ways to read the runs of a scale: frames of the same form, with other values.

A verdict that turns with them is fragile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from fedbench.measures import Measure
from fedbench.plan.claims import ClaimSpec
from fedbench.plan.plan import Plan
from fedbench.report.numbers.evidence import Evidence, is_end
from fedbench.results.claims.effects import Effects, asked, effects
from fedbench.results.claims.judge import NOT_RUN, Rule, means_agree, places_with_enough_seeds, verdict
from fedbench.results.pace import PARTS
from fedbench.results.places import Place, members
from fedbench.results.statistics import Array

LONGER = "as long again"
"""The way in which a verdict on runs that were cut short turns."""


def another_evaluation(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return numbers at another evaluation than the one that counts; it takes curves, which are not shipped."""
    return numbers.assign(value=numbers["other"])


def longer(numbers: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return numbers of one metric as if runs had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """
    moved = (numbers["value"] + PARTS * numbers["pace"]).clip(measure.low, measure.high)
    return numbers.assign(value=numbers["value"].where(np.isinf(numbers["value"]), moved))


class Variants:
    """The other ways to read one scale, which ``own`` is the usual one of."""

    def __init__(
        self, plan: Plan, targets: Sequence[str], metrics: Sequence[str], own: Evidence
    ) -> None:  # fmt: skip
        self._plan, self._targets, self._metrics, self._own = plan, targets, metrics, own

    @cached_property
    def _flipped(self) -> Evidence | None:
        """The runs with published constants instead of tuned ones, or the other way round."""
        if not any(entry.published for entry in self._plan.study.methods.values()):
            return None
        return Evidence(self._plan.with_other_constants(), self._targets, self._metrics)

    def _ways(
        self, metric: str, measure: Measure, places: Sequence[Place]
    ) -> Iterator[tuple[str, Sequence[Place], pd.DataFrame]]:
        """Yield each way with its numbers, and the places at which it may say something else."""
        own = self._own.of(metric)
        if is_end(metric):
            yield "another evaluation", places, another_evaluation(own)
            yield LONGER, places, longer(own, measure)
        if other := self._flipped:
            changed = (at for at in self._own.planned if at in other.cells)
            differ = {at[0] for at in changed if other.cells[at].key != self._own.key(at)}
            label = "tuned constants" if self._plan.scale.constants == "paper" else "published constants"
            yield label, [place for place in places if differ & {*members(place)}], other.of(metric)

    def agree(
        self, claim: ClaimSpec, measure: Measure, rule: Rule, places: Sequence[Place], methods: Sequence[str]
    ) -> Iterator[tuple[str, bool]]:
        """Say of each way that has numbers whether it leans as the scale does at the places they are for.

        A longer training only where it is known of all places that count.
        """
        metric = asked(claim)
        for label, wanted, numbers in self._ways(metric, measure, places):
            other = effects(claim, measure, wanted, methods, numbers)
            own = effects(claim, measure, wanted, methods, self._own.of(metric))
            there = ~np.isnan(other.values).any(0).all(-1)
            if label == LONGER and (places_with_enough_seeds(own.values) & ~there).any():
                continue  # it would speak for places that are not known to have it
            both = [verdict(values[:, there], rule) for values in (_of_seeds(own, other.seeds), other.values)]
            if all(judged.kind != NOT_RUN for judged in both):
                yield label, means_agree(both[0], rule) == means_agree(both[1], rule)


def _of_seeds(own: Effects, seeds: Sequence[int]) -> Array:
    """Return the effects of those seeds that another way has too; all where it has none of them."""
    shared = [at for at, seed in enumerate(own.seeds) if seed in seeds]
    return own.values[:, :, shared] if shared else own.values
