"""Classification by cross-entropy, the task of a run that names none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from fedbench.data.clients import ClientData
from fedbench.net import Leaf, Net
from fedbench.objectives.cross_entropy import of_network
from fedbench.objectives.metrics import binary_metrics, multiclass_metrics
from fedbench.spec import TrainSpec
from fedbench.task import LabelledTask, Model, Part


@dataclass(frozen=True)
class Task(LabelledTask):
    """Cross-entropy; measures AUC and average precision for two classes, accuracies for more classes."""

    measures: ClassVar[tuple[str, ...]] = ("auc", "ap", "overall_accuracy", "minority_accuracy")

    def loss(self, net: Net, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's mean cross-entropy, [K]."""
        return of_network(net, w, batch.inputs, batch.labels, batch.weight, buffers)

    def measured(self, n_classes: int, train: TrainSpec) -> tuple[str, ...]:
        """Return the metrics for this number of classes."""
        several = ("overall_accuracy", *(("minority_accuracy",) if train.minority_classes else ()))
        return ("auc", "ap") if n_classes == 2 else several

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return the metrics of the model's scores."""
        return self.of_scores(self.scores(model, part), part.labels, model.data)

    def scores(self, model: Model, part: Part) -> np.ndarray:
        """Return the network's outputs [n, C]."""
        return model.outputs(part.inputs).cpu().numpy()

    def of_scores(self, scores: np.ndarray, labels: np.ndarray, data: ClientData) -> dict[str, float]:
        """Return the metrics of outputs [n, C] on a part whose labels are [n]; ``data`` is what clients trained on."""
        if scores.shape[1] == 1:
            return binary_metrics(scores[:, 0], labels)
        return multiclass_metrics(scores, labels, data.spec.minority_classes)
