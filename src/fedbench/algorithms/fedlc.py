"""FedLC (Zhang et al., ICML 2022): logits are calibrated by the client's number of samples of each class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedbench.algorithms import fedavg
from fedbench.net import Leaf
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import NotNegative

FLOOR = 1e-8
"""The number of samples n_c for a class that a client lacks: its margin is large (100 temperature) and finite."""


@dataclass(frozen=True)
class Method(fedavg.Method):
    """FedAvg on the cross-entropy of the logits ``f_c - temperature n_c^(-1/4)``; a client has n_c samples of class c.

    The rarer a class, the more its logits have to exceed the other logits. One logit z stands for the logits (0, z).

    Attributes:
        lr: step size.
        temperature: size of the margins; 0 gives FedAvg.
    """

    temperature: NotNegative

    def loss(self, problem: Problem, state: State, w: Leaf, batch: Batch) -> Tensor:
        """Return the clients' calibrated cross-entropy [K]."""
        scores = problem.scores(w, batch, buffers_of(state))
        assert problem.class_counts is not None
        counts = problem.class_counts()[state["client"]].to(scores.dtype)
        margins = self.temperature * counts.clamp_min(FLOOR) ** -0.25
        if scores.shape[-1] == 1:
            margins = margins[:, 1:] - margins[:, :1]
        return cross_entropy(scores - margins[:, None], batch.labels, batch.weight)
