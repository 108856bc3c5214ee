"""Classification with further metrics, as medical papers and papers on fairness report them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError, unknown
from fedbench.net import Net
from fedbench.spec import TrainSpec
from fedbench.tasks import classification

NAMES = (
    "accuracy", "balanced_accuracy", "f1", "sensitivity_at_95_specificity", "worst_client_accuracy",
    "client_accuracy_std", "class_recalls",
)  # fmt: skip
BINARY = ("sensitivity_at_95_specificity",)


@dataclass(frozen=True)
class Task(classification.Task):
    """Trains as ``classification`` does; measures ``metrics`` in addition to the metrics of ``classification``.

    A client's accuracy is the accuracy on test data with the client's class proportions; ``worst_client_accuracy`` is
    the smallest over clients, ``client_accuracy_std`` the standard deviation (divisor N). ``class_recalls`` gives one
    metric for each class: ``recall_0`` and so on. Of two classes, the positive is predicted above a probability of 0.5.

    Attributes:
        metrics: names from :data:`NAMES`.
    """

    metrics: Sequence[str]

    measures: ClassVar[tuple[str, ...]] = (*classification.Task.measures, *NAMES)

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str) or not isinstance(self.metrics, Sequence) or not self.metrics:
            raise UserError(f"task 'detailed': metrics is a list of names, not {self.metrics!r}")
        for name in self.metrics:
            if name not in NAMES:
                raise UserError(f"task 'detailed': {unknown('metric', str(name), NAMES)}")

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse metrics for two classes on data with more classes."""
        super().check(data, arrays, net)
        for name in self.metrics:
            if name in BINARY and arrays.n_classes > 2:
                raise UserError(
                    f"task 'detailed': {name} is for two classes, and the data have {arrays.n_classes}"
                )

    def measured(self, n_classes: int, train: TrainSpec) -> tuple[str, ...]:
        """Return the metrics of ``classification`` and those in ``metrics``, with one recall for each class."""
        recalls = [f"recall_{label}" for label in range(n_classes)] if "class_recalls" in self.metrics else []
        asked = [name for name in self.metrics if name != "class_recalls"]
        return (*super().measured(n_classes, train), *asked, *recalls)

    def of_scores(self, scores: np.ndarray, labels: np.ndarray, data: ClientData) -> dict[str, float]:
        """Return the metrics of ``classification`` and those in ``metrics``."""
        from fedbench.objectives import detailed_metrics as detailed  # scikit-learn takes a second to import

        result = super().of_scores(scores, labels, data)
        result |= {
            name: detailed.SCALARS[name](scores, labels) for name in self.metrics if name in detailed.SCALARS
        }
        recalls = detailed.class_recalls(scores, labels)
        if "class_recalls" in self.metrics:
            result |= {f"recall_{label}": float(value) for label, value in enumerate(recalls)}
        if {"worst_client_accuracy", "client_accuracy_std"} & set(self.metrics):
            accuracies = detailed.client_accuracies(recalls, data.class_counts.cpu().numpy())
            over = {
                "worst_client_accuracy": float(accuracies.min()),
                "client_accuracy_std": float(accuracies.std()),
            }
            result |= {name: value for name, value in over.items() if name in self.metrics}
        return result
