"""Other ways to read the runs of a scale: frames of the same form, with other values.

A verdict that turns with them is fragile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from fedbench.measures import Measure
from fedbench.report.numbers.evidence import Evidence, is_end
from fedbench.results.claims.effects import Effects
from fedbench.results.claims.judge import means_agree, places_with_enough_seeds
from fedbench.results.claims.question import Question
from fedbench.results.places import Place, members
from fedbench.results.run_facts import PARTS
from fedbench.results.statistics import Array

LONGER = "as long again"
"""The way in which a verdict on runs that were cut short turns."""


def longer(numbers: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return numbers of one metric as if runs had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """
    moved = (numbers["value"] + PARTS * numbers["pace"]).clip(measure.low, measure.high)
    return numbers.assign(value=numbers["value"].where(np.isinf(numbers["value"]), moved))


def ways_agree(
    question: Question, runs: Evidence, places: Sequence[Place], effects: Effects
) -> Iterator[tuple[str, bool]]:
    """Say of each way that has numbers whether it leans as the scale's ``effects`` do at the places they are for.

    A longer training only where it is known of all places that count.
    """
    for label, wanted, numbers in _ways(question, runs, places):
        of_scale = effects if wanted == places else question.effects(runs.of(question.metric), wanted)
        other = question.effects(numbers, wanted)
        known = ~np.isnan(other.values).any(0).all(-1)
        if label == LONGER and (places_with_enough_seeds(of_scale.values) & ~known).any():
            continue  # it would speak for places that are not known to have it
        values = _of_seeds(of_scale, other.seeds), other.values
        both = [means_agree(of_places[:, known], question.rule) for of_places in values]
        if None not in both:
            yield label, both[0] == both[1]


def _ways(
    question: Question, runs: Evidence, places: Sequence[Place]
) -> Iterator[tuple[str, Sequence[Place], pd.DataFrame]]:
    """Yield each way with its numbers, and the places at which it may say something else."""
    ends = runs.of(question.metric)
    # another evaluation than the one that counts takes curves, which are not shipped
    if is_end(question.metric):
        yield "another evaluation", places, ends.assign(value=ends["other"])
        yield LONGER, places, longer(ends, question.measure)
    if other := runs.with_other_constants:
        keys = {
            at: runs.cells[at].key if at in runs.cells else "" for at in runs.planned if at in other.cells
        }
        differ = {at[0] for at, key in keys.items() if other.cells[at].key != key}
        label = "tuned constants" if runs.plan.scale.constants == "paper" else "published constants"
        yield label, [place for place in places if differ & {*members(place)}], other.of(question.metric)


def _of_seeds(effects: Effects, seeds: Sequence[int]) -> Array:
    """Return the effects of those seeds that another way has too; all where it has none of them."""
    shared = [at for at, seed in enumerate(effects.seeds) if seed in seeds]
    return effects.values[:, :, shared] if shared else effects.values
