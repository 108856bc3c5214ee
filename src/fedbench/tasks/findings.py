"""Several findings at once, with one output for each: the pre-training of codasca's Table 4 (section 6.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.objectives.metrics import auc
from fedbench.objectives.multilabel import bits, multilabel
from fedbench.task import LabelledTask, Model, Part


@dataclass(frozen=True)
class Task(LabelledTask):
    """Binary cross-entropy of each finding; a sample's findings are the bits of its class number.

    For example, a chest X-ray of class 5 has findings 0 and 2. The metric is the mean AUC over the findings that some
    samples of the measured part have and others lack.

    Attributes:
        count: number of findings, from 1 to 16.
    """

    count: int

    measures: ClassVar[tuple[str, ...]] = ("auc",)

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 16:
            raise UserError(f"task 'findings': count is from 1 to 16, not {self.count}")

    def outputs(self, arrays: Arrays) -> int:
        """Return one output for each finding."""
        return self.count

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse class numbers with more bits than there are findings."""
        if arrays.n_classes > 1 << self.count:
            raise UserError(
                f"task 'findings': {self.count} findings make {1 << self.count} classes, but the labels go up to"
                f" {arrays.n_classes - 1}; it needs labels.rule: original"
            )

    def loss(self, net: Net, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's mean cross-entropy, [K]."""
        return multilabel(net.scores(w, batch.inputs, buffers), batch.labels, batch.weight)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Return the mean AUC over findings; nan if none is defined."""
        scores = self.scores(model, part)
        labels = bits(torch.from_numpy(part.labels), self.count).numpy()
        aucs = [auc(scores[:, place], labels[:, place]) for place in range(self.count)]
        defined = [value for value in aucs if not math.isnan(value)]
        return {"auc": float(np.mean(defined)) if defined else math.nan}

    def scores(self, model: Model, part: Part) -> np.ndarray:
        """Return a score for each finding [n, count]."""
        return model.outputs(part.inputs).cpu().numpy()
