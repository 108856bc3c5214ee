"""Few-shot classification by model-agnostic meta-learning: each episode has a few classes to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.data.clients import Arrays
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.tasks._maml import Maml
from fedbench.tasks._nested import at_least


@dataclass(frozen=True)
class Task(Maml):
    """Cross-entropy on episodes of ``ways`` classes, which each episode numbers anew. See :class:`Maml`.

    The network has ``ways`` outputs, whatever the number of classes. On Omniglot, the test part has other classes
    (characters) than the training part, so that the metrics show how well new classes are learned.

    Attributes:
        ways: classes of an episode.
    """

    ways: int

    name: ClassVar[str] = "maml"
    measures: ClassVar[tuple[str, ...]] = ("accuracy", "loss")

    def __post_init__(self) -> None:
        at_least(self.name, "ways", self.ways, 2)
        super().__post_init__()

    def episode_classes(self) -> int:
        """Return ``ways``."""
        return self.ways

    def outputs(self, arrays: Arrays) -> int:
        """Return one output for each class of an episode."""
        return self.ways

    def targets(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Number the classes of an episode in the order in which they were drawn."""
        shots = labels.shape[-1] // self.ways
        return torch.arange(self.ways, device=labels.device).repeat_interleave(shots).expand(labels.shape)

    def losses(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return each episode's cross-entropy."""
        return cross_entropy(scores, targets)

    def results(self, scores: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return each episode's accuracy and loss on its query set."""
        right = (scores.argmax(-1) == targets).double().mean(1)
        return {"accuracy": right, "loss": cross_entropy(scores, targets)}
