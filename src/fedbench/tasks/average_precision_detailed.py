"""Stochastic maximisation of the average precision (fcsg), with one metric more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedbench.objectives.metrics import binary_metrics
from fedbench.task import Model, Part
from fedbench.tasks import average_precision


@dataclass(frozen=True)
class Task(average_precision.Task):
    """Trains as ``average_precision`` does; also measures the sensitivity at 95 % specificity."""

    measures: ClassVar[tuple[str, ...]] = (*average_precision.Task.measures, "sensitivity_at_95_specificity")

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return the AUC, the average precision and the sensitivity at 95 % specificity of the model's scores."""
        from fedbench.objectives.detailed_metrics import sensitivity  # scikit-learn takes a second to import

        scores = self.scores(model, part)
        sensitivities = {"sensitivity_at_95_specificity": sensitivity(scores, part.labels)}
        return binary_metrics(scores[:, 0], part.labels) | sensitivities
