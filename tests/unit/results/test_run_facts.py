"""What a run writes beside its metrics when it ends: the same as a report would read off its curve."""

from __future__ import annotations

import pandas as pd
import pytest

from fedbench.results.run_facts import pace, run_facts
from fedbench.spec import TrainSpec

TRAIN = TrainSpec(iterations=400, period=1, batch_size=1)
CURVE = pd.DataFrame(
    {
        "iteration": [0, 100, 200, 300, 350, 400],
        "test_auc": [0.5, 0.6, 0.7, 0.8, 0.82, 0.81],
    }
)


def test_each_final_metric_has_what_is_known_of_it() -> None:
    facts = run_facts({"test_auc": 0.81, "test_f1": 0.3, "test_ap": None}, CURVE, TRAIN, {})
    assert facts == {"test_auc": {"pace": pytest.approx(pace(CURVE, "test_auc"))}}


def test_the_pace_is_that_before_step_sizes_fell() -> None:
    """The metric rises by 0.1 in each fifth of the first half, and stands still after it."""
    steps = range(0, 401, 20)
    curve = pd.DataFrame({"iteration": steps, "test_auc": [0.3 + min(step, 200) / 400 for step in steps]})
    falling = TRAIN.model_copy(update={"decay_at": (0.5,)})
    paces = [run_facts({"test_auc": 0.8}, curve, train, {})["test_auc"]["pace"] for train in (falling, TRAIN)]
    assert paces == pytest.approx([0.1, 0.0], abs=1e-9)
