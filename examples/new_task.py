"""A task to copy: say in one sentence what is learned, with its source.

    cp examples/new_task.py src/fedbench/tasks/my_task.py

In a study: `defaults: {task: {name: my_task, options: {margin: 1.0}}}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from fedbench.task import LabelledTask, Leaf, Model, Net, Part, batch_mean


@dataclass(frozen=True)
class Task(LabelledTask):
    """Write the objective here. As it stands, two classes are told apart by the squared hinge loss:

        max(0, margin - y s)^2,      y = 1 or -1, s the network's score.

    Attributes:
        margin: scores that are right by this much cost nothing.
    """

    # The options. Their values stand in the configuration, all of them: a field has no default.
    margin: float

    # What `measure` returns. Describe names that fedbench.metric_table lacks in a paper's YAML, under `measures:`;
    # tables then ask for `test_NAME` or `val_NAME`.
    measures: ClassVar[tuple[str, ...]] = ("accuracy",)

    def loss(self, net: Net, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's loss [K] on its batch: inputs [K, B, ...], labels [K, B]."""
        sign = 2 * batch.labels - 1
        short = (self.margin - sign * net.scores(w, batch.inputs, buffers)[..., 0]).clamp(min=0)
        return batch_mean(short**2, batch.weight)

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure a model on a part of the data: inputs and labels of all its samples."""
        right = (model.outputs(part.inputs)[:, 0] > 0).cpu().numpy() == (part.labels == 1)
        return {"accuracy": float(right.mean())}

    # What else can be said, each with a default (fedbench.task.Task has them all):
    #   rounds, first   the sampler: which samples make a batch. Derive from Task then: a batch is what you say it is
    #   outputs         how many outputs the network has
    #   check           which data and networks do not fit, before anything is trained
    #   spread          whether each client's own model is measured at the end
    # A nested expectation, f of a mean over samples drawn given others, is a ConditionalTask.
