"""CODA (Guo et al., ICML 2020; "CoDA" in localscgdam): CODA+ with a restart of the dual variable at each stage."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedbench.algorithms import coda_plus
from fedbench.algorithms._minimax import as_scores
from fedbench.contract.problem import Problem, State
from fedbench.ranges import NumberFrom0


@dataclass(frozen=True)
class Method(coda_plus.Method):
    """Steps as in CODA+. At a stage's end (each step-size decay) the anchor moves to x, and alpha restarts as mean
    score of negatives minus mean score of positives on one larger batch per client, sums and counts pooled.

    Attributes:
        restart_samples: samples of each client in the dual restart; 0 leaves alpha as it is (CODA+).
    """

    restart_samples: NumberFrom0

    def new_stage(self, problem: Problem, server: State) -> State:
        """Move the anchor and restart alpha."""
        server = super().new_stage(problem, server)
        if not self.restart_samples or problem.draw is None:
            return server
        sums, counts = server["x"].new_zeros(2), server["x"].new_zeros(2)
        w = server["x"][None, : problem.net.d]
        statistics = None if "buffers" not in server else server["buffers"][None]
        for client in range(problem.n_clients):
            batch = problem.draw(client, self.restart_samples)
            with torch.no_grad():
                scores = as_scores(problem.net.scores(w, batch.inputs, statistics, train=False), self.score)
            for label in (0, 1):
                mine = scores[batch.labels == label]
                sums[label] += mine.sum()
                counts[label] += len(mine)
        problem.charges.add(up=4 * problem.n_clients, down=problem.n_clients)
        if not counts.all():
            return server  # no client drew a sample of one class: the means are undefined
        means = sums / counts
        return server | {"alpha": self.bounded(means[0] - means[1])}
