"""The control row of a leaderboard: classification with random scores in place of the model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbench.random import stream
from fedbench.spec import TrainSpec
from fedbench.task import Model, Part
from fedbench.tasks import classification


@dataclass(frozen=True)
class Task(classification.Task):
    """Trains as ``classification`` does; the run's seed draws the measured scores, which are the same each time."""

    measures: ClassVar[tuple[str, ...]] = (*classification.Task.measures, "sensitivity_at_95_specificity")

    def measured(self, n_classes: int, train: TrainSpec) -> tuple[str, ...]:
        """Return the metrics of ``classification`` and, for two classes, the sensitivity."""
        more = ("sensitivity_at_95_specificity",) if n_classes == 2 else ()
        return (*super().measured(n_classes, train), *more)

    def scores(self, model: Model, part: Part) -> np.ndarray:
        """Draw scores of the same shape as the model's."""
        n_classes = model.data.n_classes
        drawn = stream(model.data.seed, f"random scores {part.name}")
        return drawn.normal(size=(len(part.labels), n_classes if n_classes > 2 else 1))

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return the metrics of the random scores."""
        from fedbench.objectives.detailed_metrics import sensitivity  # scikit-learn takes a second to import

        scores = self.scores(model, part)
        result = self.of_scores(scores, part.labels, model.data)
        if model.data.n_classes == 2:
            result["sensitivity_at_95_specificity"] = sensitivity(scores, part.labels)
        return result
