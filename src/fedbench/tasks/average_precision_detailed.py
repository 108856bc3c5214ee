"""Average precision maximised online (fcsg), measured as the task ``detailed`` measures two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedbench.objectives.metrics import binary_metrics
from fedbench.task import Model, Part
from fedbench.tasks import average_precision


@dataclass(frozen=True)
class Task(average_precision.Task):
    """Trains as ``average_precision`` does and measures the sensitivity at 95 % specificity too."""

    measures: ClassVar[tuple[str, ...]] = (*average_precision.Task.measures, "sensitivity_at_95_specificity")

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure scores against labels."""
        from fedbench.objectives.detailed_metrics import sensitivity  # scikit-learn takes a second to import

        scores = self.scores(model, part)
        sensitivities = {"sensitivity_at_95_specificity": sensitivity(scores, part.labels)}
        return binary_metrics(scores[:, 0], part.labels) | sensitivities
