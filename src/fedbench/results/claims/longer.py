"""Whether a claim would come out alike after a longer training: else its curves still move, and it has no verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fedbench.metric_table import Measure
from fedbench.results.claims.claim_query import Question
from fedbench.results.claims.effects import Effects
from fedbench.results.claims.evidence import Evidence, is_end
from fedbench.results.claims.judge import means_agree, places_with_enough_seeds
from fedbench.results.places import Place
from fedbench.results.run_facts import PARTS


def longer(numbers: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return numbers of one metric as if runs had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """
    moved = (numbers["value"] + PARTS * numbers["pace"]).clip(measure.low, measure.high)
    return numbers.assign(value=numbers["value"].where(np.isinf(numbers["value"]), moved))


def agrees_after_longer(
    question: Question, runs: Evidence, places: Sequence[Place], effects: Effects
) -> bool | None:
    """Say whether the means lean as the scale's ``effects`` do after as long a training again.

    None where the pace is not known of all places that count, or the metric is not what a run ends with.
    """
    if not is_end(question.metric):
        return None
    after = question.effects(longer(runs.of(question.metric), question.measure), places)
    known = ~np.isnan(after.values).any(0).all(-1)
    if (places_with_enough_seeds(effects.values) & ~known).any():
        return None
    shared = [at for at, seed in enumerate(effects.seeds) if seed in after.seeds]
    now = effects.values[:, :, shared] if shared else effects.values
    leans, then = (means_agree(values[:, known], question.rule) for values in (now, after.values))
    return None if leans is None or then is None else leans == then
