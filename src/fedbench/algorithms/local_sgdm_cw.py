"""LocalSGDM_CW: LocalSGDM on class-weighted cross-entropy, the usual remedy for rare positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedbench.algorithms import local_sgdm
from fedbench.net import Leaf
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative
from fedbench.task import LabelledTask, Task


@dataclass(frozen=True)
class Method(local_sgdm.Method):
    """LocalSGDM whose clients weigh the loss of a sample of class c by ``(n / (C n_c))^power``.

    All clients together have n training samples, n_c of them of class c, so that all clients minimise the same loss.
    With ``power`` 1 the weights are scikit-learn's ``class_weight="balanced"``.

    Attributes:
        power: exponent of the class weights; 0 gives LocalSGDM.
    """

    power: NotNegative

    task: ClassVar[type[Task]] = LabelledTask

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' weighted cross-entropy [K]."""
        assert problem.class_counts is not None
        counts = problem.class_counts().sum(0).to(w.parts[0].dtype)
        weights = (counts.sum() / (len(counts) * counts.clamp_min(1))) ** self.power
        return problem.cross_entropy(w, batch, buffers_of(state), weights.expand(len(batch.labels), -1))
